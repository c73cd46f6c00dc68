"""The rules of the gate, compiled: what a process holds to decide on messages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.answer.gate.lexicon import Lexicon, lexicon
from service.answer.gate.normalise import normalise
from service.answer.gate.patterns import any_of, compiled, patterns_of, prefilter
from service.answer.gate.rules import GateKind, Intent, Rule, RuleFile, expanded, merged, merged_words, rule_files
from service.errors import Misconfigured
from service.settings import GateSettings


@dataclass(frozen=True, slots=True)
class CompiledIntent:
    """`needs` and `verb_needs` are the numbers of its expressions in the gate's filter."""

    verb: Any
    object: Any
    needs: frozenset[int]
    verb_needs: frozenset[int]
    within: int
    ordered: bool
    split: bool


@dataclass(frozen=True, slots=True)
class CompiledRule:
    id: str
    kind: GateKind
    intents: tuple[CompiledIntent, ...]
    exceptions: Any
    preceded_by: Any


@dataclass(frozen=True, slots=True)
class Gate:
    """The rules of every kind that is on; `possible` tells which of their expressions a text may hold.

    What these rules let through goes on to those of `more`, which so can only decline more.
    """

    rules: tuple[CompiledRule, ...]
    possible: Callable[[str], frozenset[int]]
    lexicon: Lexicon
    fillers: Any
    reporting: Any
    pointing: Any
    more: "Gate | None" = None


def load_gate(settings: GateSettings) -> Gate:
    """The gate as the settings have it; raises Misconfigured for a kind or a rule that can't be."""
    if unknown := set(settings.kinds_off) - set(GateKind):
        raise Misconfigured(f"gate.kinds_off: {', '.join(sorted(unknown))}: there are {', '.join(GateKind)}")
    return build_gate(rule_files(settings.rules_file), off=map(GateKind, settings.kinds_off))


def build_gate(found: Sequence[RuleFile], *, off: Iterable[GateKind] = ()) -> Gate:
    """Compile the rules of these files without the kinds `off`; raises Misconfigured for a pattern that can't be."""
    skipped, rules, words = frozenset(off), merged(found), merged_words(found)
    numbers: dict[str, int] = {}
    kept = tuple(_rule(rule, words, numbers) for rule in rules if rule.kind not in skipped)
    patterns = [expanded(pattern, words) for rule in rules for pattern in patterns_of(rule)]
    examples = [normalise(text) for rule in rules for text in (*rule.positives, *rule.lookalikes)]

    def any_known(field: Callable[[RuleFile], Sequence[str]]) -> Any:
        return compiled(any_of([pattern for file in found for pattern in field(file)], words))

    return Gate(
        rules=kept,
        possible=prefilter(list(numbers)),
        lexicon=lexicon(patterns, [*examples, *(word for file in found for word in file.known)]),
        fillers=any_known(lambda file: file.fillers),
        reporting=any_known(lambda file: file.reporting),
        pointing=any_known(lambda file: file.pointing),
    )


def _rule(rule: Rule, words: Mapping[str, str], numbers: dict[str, int]) -> CompiledRule:
    intents = tuple(_intent(intent, words, numbers) for intent in rule.intent)
    exceptions, preceded_by = (compiled(any_of(patterns, words)) for patterns in (rule.exceptions, rule.preceded_by))
    return CompiledRule(rule.id, rule.kind, intents, exceptions, preceded_by)


def _intent(intent: Intent, words: Mapping[str, str], numbers: dict[str, int]) -> CompiledIntent:
    verb, object_ = any_of(intent.verb, words), any_of(intent.object, words)
    verb_needs = {numbers.setdefault(verb, len(numbers))}
    needs = verb_needs | ({numbers.setdefault(object_, len(numbers))} if object_ else set())
    return CompiledIntent(
        verb=compiled(verb),
        object=compiled(object_),
        needs=frozenset(needs),
        verb_needs=frozenset(verb_needs),
        within=intent.within,
        ordered=intent.ordered,
        split=intent.split and bool(object_),
    )
