"""The moderators' pages as a whole: closed to all others, in two languages, under a strict policy."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import httpx
import pytest

from service.errors import Transient
from service.moderation.access import SESSION_COOKIE
from service.moderation.site import APIS, PAGES, moderation_app
from service.store.pool import Pool
from service.store.sessions import Person
from tests.moderators import MODERATOR, Pages, open_pages, visible


@pytest.fixture
async def pages(pool: Pool) -> AsyncIterator[Pages]:
    async with open_pages(pool) as opened:
        yield opened


def routes() -> list[tuple[str, str]]:
    return [
        (method, route.path)
        for router in (*(router for _, router in PAGES), *APIS)
        for route in router.routes
        for method in sorted(getattr(route, "methods", ()))
        if hasattr(route, "path")
    ]


@pytest.mark.parametrize(("method", "path"), routes())
async def test_every_page_is_closed_without_a_session(pages: Pages, method: str, path: str) -> None:
    asked = re.sub(r"\{[^}]*\}", "1", path)
    answer = await pages.client.request(method, asked, headers={"Origin": pages.desk.site.origin})
    if asked.startswith("/api/"):
        assert answer.status_code == 401
    else:
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/moderation/sign-in?next=")


async def test_the_address_without_a_slash_leads_to_the_first_page(pages: Pages) -> None:
    answer = await pages.client.get("https://ariane.example/moderation")
    assert (answer.status_code, answer.headers["location"]) == (303, "/moderation/")


async def test_the_pages_of_the_navigation_are_there_in_both_languages(pages: Pages) -> None:
    await pages.sign_in()
    for entry, _ in PAGES:
        english, french = await pages.text(entry.path), await pages.text(entry.path, lang="fr")
        for html, lang in ((english, "en"), (french, "fr")):
            assert f'<html lang="{lang}">' in html
            assert len(re.findall(r"<h1\b", html)) == 1
            assert f'href="/moderation{entry.path}" aria-current="page"' in html
            assert html.count('aria-current="page"') == 1
            assert 'href="#main"' in html
            assert re.search(r"<main\b", html)
            assert "<script>" not in html
            assert not re.search(r"<[^>]+\s(style|on\w+)=", html)
        assert visible(english) != visible(french)


async def test_a_chosen_language_stays(pages: Pages) -> None:
    await pages.sign_in()
    chosen = await pages.client.get("/?lang=fr", headers={"Accept-Language": "en"})
    assert '<html lang="fr">' in chosen.text
    again = await pages.client.get("/", headers={"Accept-Language": "en"})
    assert '<html lang="fr">' in again.text
    other = await pages.client.get("/?lang=xx")
    assert '<html lang="fr">' in other.text


async def test_the_policy_is_strict_and_once(pages: Pages) -> None:
    await pages.sign_in()
    answer = await pages.client.get("/")
    policies = answer.headers.get_list("content-security-policy")
    assert len(policies) == 1
    assert "default-src 'none'" in policies[0]
    assert "unsafe" not in policies[0]
    assert "form-action 'self' https://forum.example;" in policies[0]
    assert answer.headers.get_list("cache-control") == ["no-store"]
    elsewhere = await pages.client.get("https://ariane.example/")
    assert "style-src" not in elsewhere.headers["content-security-policy"]


async def test_a_browser_keeps_the_style_and_asks_whether_it_changed(pages: Pages) -> None:
    first = await pages.client.get("/static/style.css")
    assert first.headers.get_list("cache-control") == ["no-cache"]
    assert "default-src 'none'" in first.headers["content-security-policy"]
    again = await pages.client.get("/static/style.css", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (await pages.client.get("/static/../site.py")).status_code == 404


@dataclass
class Failing:
    """Sessions whose database is gone; `person` was signed in before."""

    person: Person | None

    async def present(self, session: str, **_: object) -> Person | None:
        if self.person is None:
            raise Transient("database: no connection to 10.1.2.3")
        return self.person


@pytest.mark.parametrize("path", ["/", "/api/flags"])
@pytest.mark.parametrize(("person", "told"), [(None, False), (MODERATOR, True)])
async def test_what_fails_is_told_to_nobody_outside(
    pages: Pages, pool: Pool, path: str, person: Person | None, told: bool
) -> None:
    class Down:
        async def activation(self) -> None:
            raise Transient("database: no connection to 10.1.2.3")

    desk = replace(pages.desk, sessions=Failing(person), switches=Down())  # type: ignore[arg-type]  # they fail first
    app, cookies = httpx.ASGITransport(moderation_app(desk)), {SESSION_COOKIE: "x"}
    async with httpx.AsyncClient(transport=app, base_url="https://ariane.example", cookies=cookies) as client:
        answer = await client.get(path)
    assert (answer.status_code, "10.1.2.3" in answer.text) == (503, told)


async def test_a_page_that_is_not_there_says_so(pages: Pages) -> None:
    await pages.sign_in()
    answer = await pages.client.get("/nowhere")
    assert answer.status_code == 404
    assert "There is no such page." in answer.text
