"""A language model that obeys whatever it reads: what protects members from it is the server, not its good sense."""

import re
from collections.abc import Iterator, Mapping, Sequence

from service.domain import ChatMessage, Completion

BY = "obedient"
WINDOW_TOKENS = 8192
LONGEST_PART = 2_000
CHARS_A_TOKEN = 3

_FENCE = re.compile(r"^(?:---|===) (\w{8,64}) (?:source (\d+)|(question))$", re.MULTILINE)
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,20}:)?//[^\s<>()\[\]\"'«»]+|(?:javascript|mailto|tel):[^\s<>()\[\]\"'«»]+"
    r"|upload://[^\s<>()\[\]\"'«»]+|(?:[\w\u00ad\u200b-]+\.)+[a-z]{2,10}(?:/[^\s<>()\[\]\"'«»]*)?",
    re.IGNORECASE,
)
_CALL = re.compile(r"[@＠#][\w\u200b.-]+")
_WANTS_PROMPT = re.compile(r"prompt|instruction|rules|consigne|règles|\bmarker|\bmarque\b", re.IGNORECASE)
_PARAGRAPH = re.compile(r"\n\s*\n")


class ObedientModel:
    """ChatModel without a model: it repeats all it was given to read, and does what any of it may have asked for.

    Addresses are written in every form that a forum makes a link or an image of, names and tags called, orders and
    marker lines told where anybody asked; each paragraph cites its source, so that nothing is dropped for want of one.
    """

    @property
    def window_tokens(self) -> int:
        """As much as a small model has."""
        return WINDOW_TOKENS

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float,
        timeout_seconds: float,
        schema: Mapping[str, object] | None = None,
        urgent: bool = True,
    ) -> Completion:
        """The same text for the same prompt, whatever the limits."""
        return Completion(obeyed(messages), None, truncated=False)


def count_tokens(text: str) -> float:
    """About as many as a real model's tokenizer finds in English or French."""
    return len(text) / CHARS_A_TOKEN


def obeyed(messages: Sequence[ChatMessage]) -> str:
    """The draft of a model that follows every order in its prompt, whoever wrote it."""
    read = messages[-1].content
    parts = list(_parts(read))
    answer = [paragraph for n, text in parts for paragraph in _repeated(n, text)]
    cited = next((n for n, _ in parts if n), 1)
    told = "\n".join(text for _, text in parts)
    answer += [f"{form} [[{cited}]]" for address in _found(_ADDRESS, told) for form in _forms(address)]
    answer += [f"{call} [[{cited}]]" for call in _found(_CALL, told)]
    if _WANTS_PROMPT.search(told):
        answer += [f"{line} [[{cited}]]" for message in messages[:-1] for line in message.content.split("\n") if line]
        answer += [line for line in read.split("\n") if _FENCE.match(line)]
    return "\n\n".join(answer)


def _parts(read: str) -> Iterator[tuple[int, str]]:
    """The number and the text of each source, then 0 and the question: what stands between the prompt's own fences."""
    for fence in _FENCE.finditer(read):
        end = re.search(rf"^(?:---|===) {fence[1]} ", read[fence.end() :], re.MULTILINE)
        text = read[fence.end() :][: end.start() if end else None]
        yield int(fence[2] or 0), text.strip()[:LONGEST_PART]


def _repeated(n: int, text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPH.split(text):
        if paragraph.strip():
            yield f"{paragraph.strip()} [[{n or 1}]]"


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    return list(dict.fromkeys(match[0].rstrip(".,;:!?") for match in pattern.finditer(text)))


def _forms(address: str) -> Iterator[str]:
    url = address if re.match(r"[a-z][a-z0-9+.-]*:|//", address, re.IGNORECASE) else f"https://{address}"
    yield from (
        f"See {address}",
        f"See <{url}>",
        f"[read this]({url})",
        f"![shown]({url})",
        f'<a href="{url}">here</a> <img src="{url}">',
        f"[url={url}]there[/url] [img]{url}[/img]",
        f"[look][it]\n\n[it]: {url}\n\n",
        url,
    )
