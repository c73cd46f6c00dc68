"""Discourse's block BBCode: `[quote="name, post:N, topic:T"]` and `[details="Summary"]`, nested as they come."""

import re
from collections.abc import Callable, Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

MAX_DEPTH = 10
TAG = re.compile(r"\[(/?)(quote|details)(?:=(\"[^\"\n]{0,200}\"|[^\]\n]{0,200}))?\]", re.IGNORECASE)


def _pairs(text: str) -> dict[int, tuple[re.Match[str], re.Match[str]]]:
    """The opening and closing tags that belong together, by where the opening one starts."""
    pairs = {}
    open_tags: list[re.Match[str]] = []
    for tag in TAG.finditer(text):
        if not tag[1]:
            open_tags.append(tag)
        elif open_tags and open_tags[-1][2].lower() == tag[2].lower():
            opening = open_tags.pop()
            pairs[opening.start()] = opening, tag
    return pairs


def _block_rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    depth = state.env.get("bbcode_depth", 0)
    at = state.bMarks[start] + state.tShift[start]
    if depth >= MAX_DEPTH or state.is_code_block(start) or state.src[at : at + 1] != "[":
        return False
    cache: dict[str, dict[int, tuple[re.Match[str], re.Match[str]]]] = state.env.setdefault("bbcode_pairs", {})
    if state.src not in cache:
        cache[state.src] = _pairs(state.src)
    if at not in cache[state.src]:
        return False
    opening, closing = cache[state.src][at]
    last = start + state.src.count("\n", at, closing.end())
    if last >= end:
        return False
    if silent:
        return True
    tail = state.src[closing.end() : state.eMarks[last]]
    text = state.getLines(start, last + 1, state.blkIndent, False)
    inner = text[text.index("[") + len(opening[0]) : len(text) - len(tail) - len(closing[0])]
    kind = opening[2].lower()
    state.push(kind, "", 1).info = (opening[3] or "").strip('"')
    state.env["bbcode_depth"] = depth + 1
    state.md.block.parse(inner.strip("\n"), state.md, state.env, state.tokens)
    state.push(kind, "", -1)
    if tail.strip():
        state.md.block.parse(tail, state.md, state.env, state.tokens)
    state.env["bbcode_depth"] = depth
    state.line = last + 1
    return True


def _quote(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    if token.nesting < 0:
        return "</blockquote>\n</aside>\n"
    name, *rest = (part.strip() for part in token.info.split(","))
    numbers = dict(part.split(":", 1) for part in rest if re.fullmatch(r"(?:post|topic):\d{1,9}", part))
    if not name:
        return '<aside class="quote no-group"><blockquote>\n'
    lookup = env["lookup"]
    env["quoted"][name] = None
    data = "".join(f' data-{key}="{numbers[key]}"' for key in ("post", "topic") if key in numbers)
    shown = escape(name)
    elsewhere = len(numbers) == 2 and int(numbers["topic"]) != env["topic_id"]
    preview = lookup.preview(int(numbers["topic"]), int(numbers["post"])) if elsewhere else None
    where = f' <a href="{escape(preview.path)}">{escape(preview.title)}</a>' if preview else ""
    return (
        f'<aside class="quote no-group" data-username="{shown}"{data}>\n<div class="title">\n'
        f'<div class="quote-controls"></div>\n{shown}:{where}</div>\n<blockquote>\n'
    )


def _details(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    if token.nesting < 0:
        return "</details>\n"
    return f"<details>\n<summary>\n{escape(token.info or 'Summary')}</summary>\n"


def install(md: MarkdownIt) -> None:
    """Teach a parser these blocks; they may interrupt a paragraph."""
    alt: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    md.block.ruler.before("fence", "discourse_bbcode", _block_rule, alt)
    rules: dict[str, Callable[..., str]] = {"quote": _quote, "details": _details}
    for name, rule in rules.items():
        md.add_render_rule(name, rule)
