"""Rules that moderators add to the gate's files: tried after them, so that they only decline more, and tested before.

Such an addition leaves the last test of a configuration valid (spec A4): what the files decline stays declined, and
every look-alike of the files goes on being let through.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from service.answer.gate.compiled import Gate, build_gate
from service.answer.gate.examples import failing
from service.answer.gate.match import decide
from service.answer.gate.rules import GateKind, Rule, RuleFile, checked_file, merged
from service.errors import Misconfigured


@dataclass(frozen=True, slots=True)
class Extended:
    """The gate with the additions that hold, and by its id why each of the others was left out."""

    gate: Gate
    faults: Mapping[str, str]


def read_rule(text: str, name: str) -> Rule:
    """The rule that JSON says; raises Misconfigured with one line that says what is wrong where."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise Misconfigured(f"{name} is no JSON: {exc}") from exc
    (rule,) = checked_file({"rules": [values]}, name).rules
    return rule


def extended(base: Gate, files: Sequence[RuleFile], texts: Mapping[str, str], off: Iterable[GateKind]) -> Extended:
    """`base`, compiled from `files` without the kinds `off`, with these rules (JSON by id) tried after its own.

    A rule is left out that can't be read or compiled, has the id of one of the files, or gets an example wrong: its
    own, or a look-alike of any other rule.
    """
    known = merged(files)
    rules, faults = _compilable(files, texts, {rule.id for rule in known})
    if not rules:
        return Extended(base, faults)
    both = build_gate((*files, RuleFile(rules=tuple(rules.values()))), off=off)
    more = replace(both, rules=tuple(rule for rule in both.rules if rule.id in rules))
    on = {rule.id for rule in more.rules}
    for text in (text for rule in (*known, *rules.values()) for text in rule.lookalikes):
        while found := decide(more, text):
            faults[found.rule] = f"declines a look-alike, for {found.span!r}: {text}"
            more = _without(more, found.rule)
    for rule in rules.values():
        if rule.id in on and rule.id not in faults:
            for fault in failing(replace(base, more=more), rule):
                faults[rule.id] = fault
                more = _without(more, rule.id)
                break
    return Extended(replace(base, more=more) if more.rules else base, faults)


def _without(gate: Gate, rule_id: str) -> Gate:
    return replace(gate, rules=tuple(rule for rule in gate.rules if rule.id != rule_id))


def _compilable(
    files: Sequence[RuleFile], texts: Mapping[str, str], taken: set[str]
) -> tuple[dict[str, Rule], dict[str, str]]:
    rules: dict[str, Rule] = {}
    faults: dict[str, str] = {}
    words = RuleFile(words={name: pattern for file in files for name, pattern in file.words.items()})
    for name, text in texts.items():
        try:
            rule = read_rule(text, name)
            if rule.id in taken:
                raise Misconfigured(f"the gate has a rule {rule.id} already")
            build_gate((words, RuleFile(rules=(rule,))))
        except Misconfigured as exc:
            faults[name] = str(exc)
        else:
            rules[rule.id] = rule
    return rules, faults
