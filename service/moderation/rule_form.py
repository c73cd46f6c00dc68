"""The form of a gate rule: its fields, each pattern and example on a line of its own, and the rule that they say."""

import json
from collections.abc import Mapping

from service.answer.gate.added import read_rule
from service.errors import Rejected

LINES = ("verb", "object", "exceptions", "positives", "lookalikes")
FIELDS = ("id", "kind", "language", *LINES, "within", "why")
EMPTY: Mapping[str, str] = {**dict.fromkeys(FIELDS, ""), "within": "5"}
MAX_FIELD_CHARS = 8_000


def entered(form: Mapping[str, str]) -> Mapping[str, str]:
    """What was entered, to be shown again."""
    return {field: form.get(field, "")[:MAX_FIELD_CHARS] for field in FIELDS}


def rule_text(form: Mapping[str, str]) -> tuple[str, str]:
    """The id of the form's rule, and the rule as JSON; raises Rejected or Misconfigured with what is wrong where."""
    if long := [field for field in FIELDS if len(form.get(field, "")) > MAX_FIELD_CHARS]:
        raise Rejected(f"{', '.join(long)}: {MAX_FIELD_CHARS} characters at most", status=422)
    lines = {field: [line.strip() for line in form.get(field, "").splitlines() if line.strip()] for field in LINES}
    within = form.get("within", "").strip()
    if not (within.isascii() and within.isdigit()):
        raise Rejected("within: a number of words, 0 to 60", status=422)
    values = {
        "id": form.get("id", "").strip(),
        "kind": form.get("kind", ""),
        "language": form.get("language", ""),
        "intent": [{"verb": lines["verb"], "object": lines["object"], "within": int(within)}],
        "exceptions": lines["exceptions"],
        "positives": lines["positives"],
        "lookalikes": lines["lookalikes"],
    }
    rule = read_rule(json.dumps(values), "the rule")
    return rule.id, rule.model_dump_json(exclude_defaults=True)
