"""The examples that come with every rule, as the test set of the gate: what must be declined, and what must not."""

from collections.abc import Iterable, Iterator

from service.answer.gate.compiled import Gate
from service.answer.gate.match import decide
from service.answer.gate.rules import Rule, RuleFile, merged


def failing_examples(gate: Gate, files: Iterable[RuleFile]) -> list[str]:
    """A line for each example that isn't decided as its rule says, the rules of a kind that is off aside."""
    on = {rule.id for rule in gate.rules}
    return [fault for rule in merged(files) if rule.id in on for fault in failing(gate, rule)]


def failing(gate: Gate, rule: Rule) -> Iterator[str]:
    """A line for each example of this rule that isn't decided as it says."""
    for text in rule.positives:
        if decide(gate, text) is None:
            yield f"{rule.id}: not declined: {text}"
    for text in rule.lookalikes:
        if found := decide(gate, text):
            yield f"{rule.id}: declined by {found.rule} for {found.span!r}: {text}"
