"""Compiles the patterns of rules for google-re2, whose time is linear in the text whatever the pattern."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import re2

from service.answer.gate.rules import Intent, Rule, expanded
from service.errors import Misconfigured

_ALWAYS = "alwaysthere"


def any_of(patterns: Sequence[str], words: Mapping[str, str]) -> str:
    """One regular expression for any of these patterns; an empty string for none. Raises Misconfigured."""
    return rf"\b(?:{'|'.join(_expression(expanded(pattern, words)) for pattern in patterns)})\b" if patterns else ""


def compiled(expression: str) -> Any:
    """The compiled expression, or None for an empty one; raises Misconfigured."""
    if not expression:
        return None
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(expression, options)
    except re2.error as exc:
        raise Misconfigured(f"a pattern of the gate: {exc}: {expression[:200]}") from exc


def _expression(pattern: str) -> str:
    return (
        pattern.replace(".", r"\.").replace("*", "[a-z0-9]*").replace("(", "(?:").replace("_ ", "(?:[a-z0-9]+ ){0,3}")
    )


def prefilter(expressions: Sequence[str]) -> Callable[[str], frozenset[int]]:
    """A function that tells in one pass which of these expressions, by their places, a text may hold.

    It looks for the letters that they need, which leaves a few to be tried. (One automaton of all whole expressions
    builds states for milliseconds wherever a text is new to it.)
    """
    words = re2.Filter()
    for expression in expressions:
        words.Add(expression)
    always = words.Add(_ALWAYS)
    words.Compile()
    every = frozenset(range(len(expressions)))

    def possible(text: str) -> frozenset[int]:
        found = words.Match(f"{text} {_ALWAYS}".encode(), potential=True)
        # Out of memory it tells of no match, not even of the certain one: every expression is then tried.
        return frozenset(found) if found and always in found else every

    return possible


def patterns_of(rule: Rule) -> list[str]:
    """Every pattern of a rule's intents and exceptions."""
    return [*(pattern for intent in rule.intent for pattern in _of_intent(intent)), *rule.exceptions, *rule.preceded_by]


def _of_intent(intent: Intent) -> tuple[str, ...]:
    return (*intent.verb, *intent.object)
