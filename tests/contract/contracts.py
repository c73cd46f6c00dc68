"""Checks bodies against the published OpenAPI contracts, which lie in ../shared."""

import json
from functools import cache
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from tests.shared import SHARED

Json = Any


@cache
def contract(name: str) -> Json:
    text = (SHARED / "contracts" / name).read_text(encoding="utf-8")
    return _plain(json.loads(text) if name.endswith(".json") else yaml.safe_load(text))


def check(name: str, schema: str, value: Json) -> None:
    """Raise jsonschema's ValidationError unless the value fits the contract's schema of that name."""
    components = contract(name)["components"]
    Draft202012Validator({"$ref": f"#/components/schemas/{schema}", "components": components}).validate(value)


def answers(name: str, path: str, method: str) -> dict[str, str]:
    """The schema's name of each status that the contract lists for a request."""
    responses = contract(name)["paths"][path][method]["responses"]
    return {
        status: next(iter(response["content"].values()))["schema"]["$ref"].rsplit("/", 1)[1]
        for status, response in responses.items()
        if "content" in response
    }


def _plain(schema: Json) -> Json:
    """OpenAPI 3.0's `nullable` in the words of JSON Schema."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _plain(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") is True else plain
