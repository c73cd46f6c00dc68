"""How deep HTML nests, told from its tags alone: the parser's time is quadratic in depth, so it is measured first."""

import re

MAX_DEPTH = 1_000
"""Deeper HTML is not parsed: 6,400 nested elements take 0.03 s, 200,000 take 87 s."""

# A tag as the HTML standard's tokenizer reads it (13.2.5.6 on): a ">" inside quotes doesn't end it, a quote inside a
# name doesn't start one. Possessive throughout, and the end of the text ends a tag: the scan is linear.
_TAG = re.compile(
    r"""<(?:
        (?P<close>/)?+ (?P<name>[a-zA-Z][^\s/>]*+)
        (?: [\s/]++
          | (?: =[^\s/>=]*+ | [^\s/>=]++ ) (?: \s*+ = \s*+ (?: "[^"]*+"?+ | '[^']*+'?+ | [^\s>]*+ ) )?+
        )*+
        (?:>|\Z)
      | (?P<odd>[!?/])
    )""",
    re.VERBOSE | re.ASCII,
)
_VOID = frozenset({"br", "embed", "hr", "img", "meta"})
_VOID_OUTSIDE_SVG = frozenset({"area", "base", "col", "input", "link", "param", "source", "track", "wbr"})
_RAW_TEXT = frozenset(
    {"iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp"}
)


def is_too_deep(html: str) -> bool:
    """Whether `html` may nest deeper than MAX_DEPTH (elements a parser adds by itself at most double it)."""
    return html.count("<") > MAX_DEPTH and depth_bound(html) > MAX_DEPTH


def depth_bound(html: str) -> int:
    """An upper bound of the nesting that the tags of `html` ask for.

    Only an end tag that meets its own start tag counts as one; past a comment or raw text, where tags may not be
    tags, nothing counts as closed any more. Right for what Discourse cooks, and never too low.
    """
    open_names: list[str] = []
    deepest = 0
    for tag in _TAG.finditer(html):
        name = (tag["name"] or "").lower()
        if tag["odd"] or (name in _RAW_TEXT and not tag["close"] and not html.startswith(f"</{name}>", tag.end())):
            return max(deepest, len(open_names) + html.count("<", tag.start()))
        if tag["close"]:
            if open_names and open_names[-1] == name:
                open_names.pop()
        elif not _is_void(name, open_names):
            open_names.append(name)
            deepest = max(deepest, len(open_names))
    return deepest


def _is_void(name: str, open_names: list[str]) -> bool:
    if name in _VOID_OUTSIDE_SVG:
        return "svg" not in open_names and "math" not in open_names
    return name in _VOID
