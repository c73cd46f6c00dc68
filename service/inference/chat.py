"""What chat adapters have in common: the prompt's room, and text without the model's thinking."""

import math
import re
from collections.abc import Sequence

from service.domain import ChatMessage
from service.errors import Rejected
from service.inference.tokens import estimated_tokens

MESSAGE_TOKENS = 8
"""What a chat template adds around a message, about."""
MAX_COMPLETION_CHARS = 100_000
"""No completion that we ask for comes near: a longer text comes from a server that doesn't stop."""

_OPEN = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_OPENS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CLOSE_AT_EDGE = re.compile(r"(?:(?<=\n)|^)[ \t]*</think(?:ing)?>|</think(?:ing)?>(?=[ \t]*(?:\n|$))", re.IGNORECASE)


def refuse_long_prompt(messages: Sequence[ChatMessage], *, max_tokens: int, window_tokens: int) -> None:
    """Raise Rejected (413) when the prompt, estimated on the safe side, leaves no room for `max_tokens`."""
    tokens = math.ceil(sum(estimated_tokens(one.content) + MESSAGE_TOKENS for one in messages))
    if tokens + max_tokens > window_tokens:
        raise Rejected(
            f"a prompt of about {tokens} tokens and {max_tokens} of answer don't fit in {window_tokens}: "
            "give less evidence, or a larger context to the model",
            status=413,
        )


def refuse_cut_prompt(messages: Sequence[ChatMessage], *, prompt_tokens: int | None, window_tokens: int) -> None:
    """Raise Rejected (413) when the server read less than it was sent: past its window it drops messages silently.

    No tokenizer joins two words into one token, so fewer tokens than words tell of a cut; a full window does too.
    """
    if prompt_tokens is None:
        return
    words = sum(len(one.content.split()) for one in messages)
    if prompt_tokens < words or prompt_tokens >= window_tokens:
        raise Rejected(
            f"the model read {prompt_tokens} tokens of a prompt of {words} words (window {window_tokens}): it was cut; "
            "give less evidence, or a larger context to the model",
            status=413,
        )


def without_thinking(text: str) -> tuple[str, bool]:
    """The text after the thinking that it begins with, and whether there was any.

    Thinking that never ends leaves nothing. A closing tag at a line's edge, with none that opens before it, ends
    thinking that the chat template opened.
    """
    stripped = False
    while begun := _OPEN.match(text) or _lone_close(text):
        stripped = True
        if begun.re is _CLOSE_AT_EDGE:
            text = text[begun.end() :]
            continue
        closed = re.compile(rf"</{begun[1]}>", re.IGNORECASE).search(text, begun.end())
        text = text[closed.end() :] if closed else ""
    return text.strip(), stripped


def _lone_close(text: str) -> re.Match[str] | None:
    closed = _CLOSE_AT_EDGE.search(text)
    return None if closed is None or _OPENS.search(text, 0, closed.start()) else closed
