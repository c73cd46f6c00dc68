"""A forum's view of a post, written apart from the sanitizer: what in it a reader could click, load or be called by.

The parser is markdown-it-py with HTML and linkify on; the scans follow Discourse's own matchers for mentions, hashtags,
BBCode and uploads. Server-made links are taken out first, by their exact address.
"""

import re
from collections.abc import Iterable

from linkify_it import LinkifyIt  # type: ignore[import-untyped]  # it ships no types
from markdown_it import MarkdownIt

DISCOURSE_ENDINGS = [
    "com",
    "net",
    "org",
    "io",
    "onion",
    "co",
    "tv",
    "ru",
    "cn",
    "us",
    "uk",
    "me",
    "de",
    "fr",
    "fi",
    "gov",
    "ddd",
]
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|\bwww\.\w|upload://|mailto:|javascript:", re.IGNORECASE)
E_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.\w+")
MENTION = re.compile(r"(?:^|[^\w])@\w")
HASHTAG = re.compile(r"(?:^|[^\w])#(?!\d+(?:[^\w:-]|$))[\u00c0-\u1fff\u2c00-\ud7ff\w:-]")
NAMES = "quote|details|poll|date|date-range|event|url|email|img|spoiler|blur|wrap|code|grid|policy|chat|b|i|u|s"
BBCODE = re.compile(rf"\[/?(?:{NAMES})(?:\]|[\s=][^\]]*\])|\[/[a-z-]+\]", re.IGNORECASE)
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff\ue000-\uf8ff]"
)


def forum_parser() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": True, "linkify": True}).enable(["table", "strikethrough", "linkify"])
    md.linkify = LinkifyIt().tlds(DISCOURSE_ENDINGS, True)
    return md


PARSER = forum_parser()


def live(post: str, server_links: Iterable[str] = ()) -> list[str]:
    """Everything in `post` that is neither text nor code nor one of `server_links`."""
    allowed = set(server_links)
    found: list[str] = [f"unseen {match[0]!r}" for match in UNSEEN.finditer(post)]
    for token in PARSER.parse(post):
        if token.type == "html_block":
            found.append(f"html {token.content!r}")
        in_link = False
        run: list[str] = []
        for child in token.children or ():
            match child.type:
                case "link_open":
                    in_link = True
                    if child.attrs.get("href") not in allowed or child.info == "auto":
                        found.append(f"link {child.attrs.get('href')}")
                case "link_close":
                    in_link = False
                case "html_inline":
                    found.append(f"html {child.content!r}")
                case "image":
                    found.append(f"image {child.attrs.get('src')}")
                case "code_inline":
                    run.append("\x00")
                case "text" | "text_special" if not in_link:
                    run.append(child.content)
                    found += [f"mention {child.content!r}"] if MENTION.search(child.content) else []
                    found += [f"hashtag {child.content!r}"] if HASHTAG.search(child.content) else []
                case "text":
                    found += (
                        [f"label {child.content!r}"]
                        if MENTION.search(child.content) or HASHTAG.search(child.content) or "://" in child.content
                        else []
                    )
                case "softbreak" | "hardbreak":
                    run.append("\n")
        text = "".join(run)
        for kind, pattern in (("address", ADDRESS), ("e-mail", E_MAIL), ("bbcode", BBCODE)):
            found += [f"{kind} {match[0]!r}" for match in pattern.finditer(text)]
    return found


def raw_bbcode(post: str) -> list[str]:
    """Lines that Discourse's block rule, which reads the raw text, would take for BBCode (outside fences)."""
    lines, fence = [], ""
    for line in post.split("\n"):
        mark = re.match(r"[ >]*(?:[-+*] |\d+[.)] )*(`{3,})", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and re.match(rf"[ >]*\[/?(?:{NAMES})[\s=\]]", line, re.IGNORECASE):
            lines.append(line)
    return lines
