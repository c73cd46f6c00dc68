"""What a draft holds for no reader: reasoning, chat-template turns, hidden elements; code is left alone."""

import re
from bisect import bisect_right
from collections import Counter
from functools import cache

from markdown_it import MarkdownIt

_THOUGHT = r"think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|inner_monologue|monologue"
_REASONING = re.compile(
    rf"(?:<|&lt;|＜|◁)\s*(?P<close>/?)\s*(?:\w{{1,20}}:)?(?:{_THOUGHT})(?:\s[^<>\n]{{0,200}}?)?(?P<empty>/?)\s*(?:>|&gt;|＞|▷)"
    r"|\[(?P<close2>/?)(?:think|thinking|reasoning)\]"
    r"|<\|(?:(?P<close3>end)|begin|start)_(?:of_)?(?:thought|thinking)\|>",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"<[|｜](?P<name>[\w▁ -]{1,40})[|｜]>|(?P<inst>\[/?INST\]|<</?SYS>>)|<(?P<gemma>(?:start|end)_of_turn)>"
)
_ROLE = re.compile(
    r"\s*(system|developer|user|tool|assistant|model|analysis|commentary|final)\b[ \t]*\n?", re.IGNORECASE
)
_SPOKEN = frozenset({"assistant", "model", "final"})
_STARTS = frozenset({"im_start", "start_header_id", "start_of_turn", "start", "channel"})
_ROLES = frozenset({"system", "user", "assistant", "tool", "developer"})
_NEUTRAL = frozenset({"end_header_id", "message", "im_sep", "begin_of_text", "constrain", "pad"})
_HIDDEN = re.compile(
    r"(?P<comment><!--)|(?P<end>-->)|<(?P<close>/?)(?P<name>script|style|iframe|svg|math|object|template|noscript|"
    r"textarea|head|select|audio|video|canvas|tool_call|tool_response|function_calls?|"
    r"(?:evidence|excerpt|passage|context|system|instructions?)[\w:-]{0,40})(?=[\s/>])[^<>]{0,2000}>",
    re.IGNORECASE,
)
_BACKTICKS = re.compile(r"(?<!\\)`+")
_FENCE_END = re.compile(r"[\s>]*(`{3,}|~{3,})\s*")

Spans = list[tuple[int, int]]


def strip_hidden(text: str, removed: Counter[str]) -> str:
    """The draft without reasoning, other speakers' turns, comments and elements whose content is never shown.

    An unclosed reasoning tag hides all that follows, a lone closing tag all that stands before it; code is left alone.
    """
    for _ in range(4):
        shorter = _drop_reasoning(text, _code(text, certain=True)) if _REASONING.search(text) else text
        if shorter == text:
            break
        removed["reasoning"] += 1
        text = shorter
    for drop, sign, kind in ((_drop_turns, _TURN, "turn"), (_drop_elements, _HIDDEN, "html")):
        shorter = drop(text, _code(text, certain=False)) if sign.search(text) else text
        if shorter != text:
            removed[kind] += 1
            text = shorter
    return text


def _drop_reasoning(text: str, code: Spans) -> str:
    kept: list[str] = []
    depth = start = 0
    for tag in _REASONING.finditer(text):
        if depth == 0 and _within(code, tag.start()):
            continue
        if tag["close"] or tag["close2"] or tag["close3"]:
            if depth == 0:
                kept = []
            depth = max(0, depth - 1)
            if depth == 0:
                start = tag.end()
        elif not tag["empty"]:
            if depth == 0:
                kept.append(text[start : tag.start()])
            depth += 1
    if depth == 0:
        kept.append(text[start:])
    return " ".join(piece for each in kept if (piece := each.strip(" ")))


def _drop_turns(text: str, code: Spans) -> str:
    kept: list[str] = []
    speaker, start = "assistant", 0
    tokens = [token for token in _TURN.finditer(text) if not _within(code, token.start())]
    for token in tokens:
        if speaker in _SPOKEN:
            kept.append(text[start : token.start()])
        start = token.end()
        name = (token["name"] or token["gemma"] or token["inst"]).lower().replace("▁", "_")
        if name in _STARTS:
            role = _ROLE.match(text, start)
            speaker = role[1].lower() if role else "assistant"
            start = role.end() if role else start
        elif name in _ROLES:
            speaker = name
        elif name in ("[inst]", "<<sys>>"):
            speaker = "user"
        elif name == "[/inst]" or (name == "<</sys>>" and "[/INST]" not in text[start:]):
            speaker = "assistant"
        elif name not in _NEUTRAL and name != "<</sys>>":
            # The end of a turn: what a model goes on to write after its answer is somebody else's part.
            if "".join(kept).strip():
                return "".join(kept)
            speaker = "assistant"
    if speaker in _SPOKEN:
        kept.append(text[start:])
    return "".join(kept)


def _drop_elements(text: str, code: Spans) -> str:
    tags = [tag for tag in _HIDDEN.finditer(text) if not _within(code, tag.start())]
    last_close = {_element(tag): tag.start() for tag in tags if tag["close"] or tag["end"]}
    kept: list[str] = []
    inside, start = "", 0
    for tag in tags:
        name, closing = _element(tag), bool(tag["close"] or tag["end"])
        if not inside and not closing and last_close.get(name, -1) > tag.start():
            kept.append(text[start : tag.start()])
            inside = name
        elif inside == name and closing:
            inside, start = "", tag.end()
        elif not inside and tag["comment"]:
            kept.append(text[start : tag.start()])
            start = tag.end()
    return " ".join([*kept, text[start:]])


def _element(tag: re.Match[str]) -> str:
    return (tag["name"] or "comment").lower()


def _within(spans: Spans, at: int) -> bool:
    index = bisect_right(spans, (at, len(spans) and spans[-1][1] + 1)) - 1
    return index >= 0 and at < spans[index][1]


@cache
def _blocks() -> MarkdownIt:
    return MarkdownIt("commonmark").disable(["html_block", "reference", "inline", "text_join"])


def _code(text: str, *, certain: bool) -> Spans:
    """Where code stands in `text`; with `certain`, an unclosed fence and a span over several lines don't count."""
    if "`" not in text and "~~~" not in text and "    " not in text and "\t" not in text:
        return []
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    spans: Spans = []
    prose = 0
    for token in _blocks().parse(text):
        if token.type not in ("fence", "code_block") or token.map is None:
            continue
        first, last = token.map
        closed = last - 1 > first and _FENCE_END.fullmatch(lines[last - 1]) is not None
        if certain and token.type == "fence" and not closed:
            continue
        spans += _code_spans(text, starts[prose], starts[first], certain)
        spans.append((starts[first], starts[last]))
        prose = last
    spans += _code_spans(text, starts[prose], len(text), certain)
    return spans


def _code_spans(text: str, start: int, end: int, certain: bool) -> Spans:
    """The inline code between two places: runs of backticks pair with the next of their length in the paragraph."""
    spans: Spans = []
    for paragraph in re.finditer(r"(?:[^\n]|\n(?![ \t]*\n))+", text[start:end]):
        runs = [
            (run.start() + start, run.end() + start) for run in _BACKTICKS.finditer(text[start:end], *paragraph.span())
        ]
        partner: dict[int, int] = {}
        ahead: dict[int, int] = {}
        for index in range(len(runs) - 1, -1, -1):
            length = runs[index][1] - runs[index][0]
            if length in ahead:
                partner[index] = ahead[length]
            ahead[length] = index
        index = 0
        while index < len(runs):
            other = partner.get(index)
            if other is None:
                index += 1
                continue
            opening, closing = runs[index][0], runs[other][1]
            if not (certain and "\n" in text[opening:closing]):
                spans.append((opening, closing))
            index = other + 1
    return spans
