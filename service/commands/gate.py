"""`ariane gate`: what the input gate decides on messages, one JSON line each, and whether its rules hold."""

import sys
from collections.abc import Iterable
from functools import partial
from typing import Literal, TextIO

import click
from pydantic import BaseModel, TypeAdapter

from service.answer.gate.compiled import Gate, load_gate
from service.answer.gate.examples import failing_examples
from service.answer.gate.match import decide
from service.answer.gate.rules import rule_files
from service.commands.jsonl import answer_lines, read_line
from service.commands.options import configured
from service.settings import Settings

RULES_FAIL = 1


class _Turn(BaseModel):
    role: Literal["user", "bot"]
    text: str


class _Line(BaseModel):
    """One message; `history` are the earlier turns, oldest first."""

    id: str | int
    text: str
    lang: str | None = None
    history: list[_Turn] = []


_LINE = TypeAdapter(_Line)


def gate_jsonl(lines: Iterable[str], out: TextIO, gate: Gate) -> int:
    """Decide on a message a line; status and errors as for `answer_lines`."""
    return answer_lines("ariane gate", lines, out, lambda line: read_line(line, _LINE), partial(_decided, gate))


def _decided(gate: Gate, given: _Line) -> dict[str, object]:
    found = decide(gate, given.text, [turn.text for turn in given.history if turn.role == "user"])
    return {
        "id": given.id,
        "decision": "decline" if found else "proceed",
        "rule": found.rule if found else None,
        "kind": found.kind if found else None,
        "span": found.span if found else None,
    }


@click.command("gate")
@click.argument("messages", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@click.option("--jsonl", is_flag=True, help="Read a JSON object a line from MESSAGES (by default stdin), write one.")
@click.option("--test", "test_rules", is_flag=True, help="Try every rule, yours included, on its own examples.")
@configured
def command(settings: Settings, messages: TextIO, jsonl: bool, test_rules: bool) -> None:
    """Say what the gate decides on messages: {"id", "text", "lang"?, "history"?: [{"role", "text"}]} a line.

    The rules are the program's and those of gate.rules_file; `span` are the words that a rule met, accents and case
    folded.
    """
    if jsonl == test_rules:
        raise click.UsageError("give --jsonl or --test")
    gate = load_gate(settings.gate)
    if jsonl:
        raise SystemExit(gate_jsonl(messages, sys.stdout, gate))
    faults = failing_examples(gate, rule_files(settings.gate.rules_file))
    for fault in faults:
        click.echo(fault)
    click.echo(f"{len(gate.rules)} rules, {len(faults)} examples wrong", err=True)
    raise SystemExit(RULES_FAIL if faults else 0)
