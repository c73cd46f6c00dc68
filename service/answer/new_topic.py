"""The link to a new topic that a member has only to send: filled in with his question, made by the server (spec A8)."""

from urllib.parse import quote

from service.answer.markup.invisible import strip_invisible
from service.answer.messages import Message, message
from service.domain import Question

PATH = "/new-topic"
"""Discourse opens its composer there, filled in with the query's title, body and category_id (meta.discourse.org)."""
TITLE_CHARS = 120
BODY_CHARS = 600
LONGEST_URL = 2_000
"""Browsers and proxies take as much; a letter beyond ASCII is six characters of it or more."""


def new_topic_link(question: Question, base_url: str, *, seed: int) -> str:
    """The Markdown link, in a line of its own in the question's language."""
    return f"[{message(Message.NEW_TOPIC, question.lang, seed)}]({new_topic_url(question, base_url)})"


def new_topic_url(question: Question, base_url: str) -> str:
    """`<base>/new-topic?title=...&body=...`, with the category of the asking topic where it is known.

    All but letters, digits and `-._~` is percent-encoded, so that no character of the member's ends the address, or
    the link around it. At most LONGEST_URL characters after the base: the body is cut, then the title.
    """
    plain = strip_invisible(question.text)[0].strip()
    category = f"&category_id={question.category_id}" if question.category_id is not None else ""
    title = _cut(" ".join((question.title or plain).split()), TITLE_CHARS)
    head = f"{PATH}?title={_encoded(title, LONGEST_URL // 2)}"
    body = _cut(plain, BODY_CHARS)
    room = LONGEST_URL - len(head) - len("&body=") - len(category)
    return f"{base_url.rstrip('/')}{head}&body={_encoded(body, room)}{category}"


def _cut(text: str, chars: int) -> str:
    """At most `chars` characters, cut at a word where there is one."""
    return text if len(text) <= chars else f"{text[: chars - 1].rsplit(maxsplit=1)[0]}…" if text.strip() else ""


def _encoded(text: str, room: int) -> str:
    """The text percent-encoded, as much of its beginning as takes at most `room` characters."""
    out, used = [], 0
    for char in text:
        piece = quote(char, safe="", errors="replace")
        used += len(piece)
        if used > room:
            break
        out.append(piece)
    return "".join(out)
