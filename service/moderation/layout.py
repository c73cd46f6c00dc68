"""What every page shows: head, navigation, who is signed in, and its own part, in the reader's language."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from service.domain import ENGLISH, Lang
from service.moderation.access import Session
from service.moderation.desk import Desk
from service.moderation.wording import Words, texts

LANG_COOKIE = "ariane_lang"
LANG_SECONDS = 365 * 24 * 3600
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the navigation: its text is `common.nav_<name>`, its path starts at the pages' root.

    Pages below that path are its own; the first page's path is "/", with which no other begins.
    """

    name: str
    path: str


def words_of(request: Request, default: str = ENGLISH) -> Words:
    """The reader's language: as he asks in ?lang, as he did before, as his browser prefers, or the default."""
    asked = (request.query_params.get("lang"), request.cookies.get(LANG_COOKIE), *_preferred(request))
    return Words(next((Lang(lang) for lang in asked if lang and lang in texts()), Lang(default)))


def path_of(request: Request) -> str:
    """The path of a request as a page knows it, from the pages' root on."""
    return request.url.path.removeprefix(cast("str", request.scope["root_path"]))


def page(request: Request, template: str, *, title: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page from its template; `title` is the key of its heading, `values` are what its template names.

    Every template also has: `t` (Words), `root` (start of every link), `forum` (the forum's address), `me` (the
    Session, or None), `path`.
    """
    here = cast("Desk", request.app.state.desk)
    words = words_of(request, here.settings.forum.language)
    path, session = path_of(request), cast("Session | None", getattr(request.state, "session", None))
    html = _TEMPLATES.get_template(template).render(
        t=words,
        title=words(title),
        root=here.site.root,
        forum=here.settings.forum.base_url,
        path=path,
        me=session,
        csrf=session.csrf if session else "",
        nav=_entries(request, path) if session else (),
        languages=[(lang, _in_language(request, lang)) for lang in texts()],
        **values,
    )
    response = HTMLResponse(html, status, headers={"content-language": words.lang})
    if request.query_params.get("lang") == words.lang:
        response.set_cookie(
            LANG_COOKIE,
            words.lang,
            max_age=LANG_SECONDS,
            path=here.site.root,
            secure=here.site.secure,
            httponly=True,
            samesite="lax",
        )
    return response


def _entries(request: Request, path: str) -> list[tuple[Entry, bool]]:
    entries = cast("tuple[Entry, ...]", request.app.state.nav)
    return [(entry, f"{path}/".startswith(f"{entry.path}/")) for entry in entries]


def _in_language(request: Request, lang: str) -> str:
    return urlencode([*((k, v) for k, v in request.query_params.multi_items() if k != "lang"), ("lang", lang)])


def _preferred(request: Request) -> list[str]:
    """The languages of Accept-Language, the most wanted first."""
    weighed = []
    for part in request.headers.get("accept-language", "")[:200].split(","):
        lang, _, q = part.partition(";q=")
        try:
            weighed.append((-float(q or 1), lang.strip().partition("-")[0].lower()))
        except ValueError:
            continue
    return [lang for weight, lang in sorted(weighed, key=lambda one: one[0]) if weight < 0]
