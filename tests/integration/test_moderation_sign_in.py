"""Signing in by the simulated forum: staff come in, and nothing forged, replayed, late or sent by others does."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
from click.testing import CliRunner

from service.__main__ import ariane
from service.discourse.connect import signature
from service.moderation import access
from service.moderation.sign_in import safe_next
from service.settings import Settings
from service.simulator.app import create_simulator
from service.store import sessions
from service.store.pool import Pool
from tests.moderators import ADMIN, CONNECT_SECRET, SETTINGS, Pages, open_pages, visible
from tests.simulated import Clock, tiny_forum

FORUM = "http://127.0.0.1:4200"
ORIGIN = "https://ariane.example"
RETURN = f"{ORIGIN}/moderation/sign-in/return"


@dataclass(slots=True)
class Browser:
    """A browser between the pages and the forum, which follows no redirect by itself."""

    client: httpx.AsyncClient
    pages: Pages

    async def go(self, url: str, **headers: str) -> httpx.Response:
        return await self.client.get(url, headers=headers)

    async def until_returning(self, name: str, path: str = "/") -> str:
        """Begin a sign-in and be that member at the forum; the address it sends the browser back to."""
        begun = await self.go(f"{ORIGIN}/moderation/sign-in/start?{urlencode({'next': path})}")
        assert begun.status_code == 303
        back = await self.go(f"{begun.headers['location']}&{urlencode({'as': name})}")
        assert back.status_code == 302, back.text
        address = str(back.headers["location"])
        assert address.startswith(f"{RETURN}?")
        return address

    async def signed_in(self) -> bool:
        return (await self.go(f"{ORIGIN}/moderation/")).status_code == 200


@asynccontextmanager
async def open_browser(
    pool: Pool, folder: Path, *, settings: Settings = SETTINGS, clock: Clock | None = None
) -> AsyncIterator[Browser]:
    forum = create_simulator(tiny_forum(folder), connect_secrets={"ariane.example": CONNECT_SECRET})
    at_forum = settings.model_copy(update={"forum": settings.forum.model_copy(update={"base_url": FORUM})})
    async with open_pages(pool, at_forum, clock=clock) as pages:
        apps = {ORIGIN: httpx.ASGITransport(pages.app), FORUM: httpx.ASGITransport(forum)}
        async with httpx.AsyncClient(mounts=apps) as client:
            yield Browser(client, pages)


@pytest.fixture
async def browser(pool: Pool, tmp_path: Path) -> AsyncIterator[Browser]:
    async with open_browser(pool, tmp_path) as opened:
        yield opened


def cookies(response: httpx.Response) -> dict[str, str]:
    return {line.partition("=")[0]: line for line in response.headers.get_list("set-cookie")}


async def rows(pool: Pool, table: str) -> int:
    async with pool.connection() as conn:
        row = await (await conn.execute(f"SELECT count(*) FROM {table}")).fetchone()
    return int(row[0]) if row else 0


async def test_staff_comes_in_and_lands_on_the_page_he_wanted(browser: Browser) -> None:
    refused = await browser.go(f"{ORIGIN}/moderation/?x=1")
    assert refused.headers["location"] == "/moderation/sign-in?next=%2F%3Fx%3D1"
    asked = await browser.go(ORIGIN + refused.headers["location"])
    assert "/moderation/sign-in/start?next=%2F%3Fx%3D1" in asked.text
    back = await browser.go(await browser.until_returning("boss", "/?x=1"))
    assert (back.status_code, back.headers["location"]) == (303, "/moderation/?x=1")
    cookie = cookies(back)["ariane_session"].lower()
    for attribute in ("httponly", "secure", "samesite=lax", "path=/moderation", f"max-age={12 * 3600}"):
        assert attribute in cookie
    page = await browser.go(f"{ORIGIN}/moderation/")
    assert page.status_code == 200
    assert "boss" in visible(page.text)


async def test_the_table_of_sessions_opens_no_door(browser: Browser, pool: Pool) -> None:
    back = await browser.go(await browser.until_returning("boss"))
    secret = cookies(back)["ariane_session"].split("=")[1].split(";")[0]
    async with pool.connection() as conn:
        row = await (
            await conn.execute("SELECT session_sha256, username, user_id, admin FROM moderator_sessions")
        ).fetchone()
    assert row is not None
    assert secret.encode() not in bytes(row[0])
    assert row[1:] == ("boss", 1, True)


@pytest.mark.parametrize("name", ["alice", "newbie", "Zoé"])
async def test_a_member_is_refused(browser: Browser, name: str) -> None:
    back = await browser.go(await browser.until_returning(name))
    assert back.status_code == 403
    assert "moderators and administrators" in back.text
    back = await browser.client.get(await browser.until_returning(name), headers={"Accept-Language": "fr"})
    assert '<p lang="fr">Ces pages sont réservées aux modérateurs' in back.text
    assert "ariane_session" not in cookies(back)
    assert not await browser.signed_in()


async def test_whoever_is_signed_in_at_the_forum_need_not_choose_again(browser: Browser) -> None:
    await browser.go(await browser.until_returning("boss"))
    begun = await browser.go(f"{ORIGIN}/moderation/sign-in/start")
    assert (await browser.go(begun.headers["location"])).status_code == 302


async def test_a_replayed_answer_is_refused(browser: Browser) -> None:
    address = await browser.until_returning("boss")
    kept = browser.client.cookies["ariane_sign_in"]
    assert (await browser.go(address)).status_code == 303
    assert (await browser.go(address)).status_code == 403
    browser.client.cookies.clear()
    assert (await browser.go(address)).status_code == 403
    browser.client.cookies.set("ariane_sign_in", kept, domain="ariane.example", path="/moderation")
    assert (await browser.go(address)).status_code == 403


async def test_an_answer_that_another_browser_asked_for_is_refused(browser: Browser) -> None:
    """Else someone could sign a moderator in as himself, or take an answer that was meant for another."""
    address = await browser.until_returning("boss")
    browser.client.cookies.clear()
    assert (await browser.go(address)).status_code == 403
    await browser.go(f"{ORIGIN}/moderation/sign-in/start")
    assert (await browser.go(address)).status_code == 403
    assert not await browser.signed_in()


async def test_an_answer_after_ten_minutes_is_refused(browser: Browser) -> None:
    address = await browser.until_returning("boss")
    browser.pages.clock.tick(10 * 60 + 1)
    assert (await browser.go(address)).status_code == 403


async def test_whoever_begins_without_end_fills_no_table(
    browser: Browser, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_BEGUN", 3)
    for _ in range(9):
        browser.pages.clock.tick(1)
        await browser.go(f"{ORIGIN}/moderation/sign-in/start")
    assert await rows(pool, "sign_ins") == 4
    assert (await browser.go(await browser.until_returning("boss"))).status_code == 303


def resigned(address: str, change: dict[str, str], secret: str = CONNECT_SECRET) -> str:
    """The forum's answer with something else in it, signed anew."""
    sent = dict(parse_qsl(urlsplit(address).query))
    fields = dict(parse_qsl(base64.b64decode(sent["sso"]).decode())) | change
    sso = base64.b64encode(urlencode(fields).encode()).decode()
    return f"{RETURN}?{urlencode({'sso': sso, 'sig': signature(secret.encode(), sso)})}"


async def test_forged_answers_are_refused_and_use_nothing_up(browser: Browser) -> None:
    address = await browser.until_returning("alice")
    forged = [
        resigned(address, {"admin": "true"}, "a guess of enough characters"),
        resigned(address, {"return_sso_url": "https://elsewhere.example/"}),
        f"{address}0",
        address.replace("sig=", "sig=0"),
        f"{RETURN}?sso=&sig=x",
        f"{RETURN}?sso=bm9uY2U9MQ%3D%3D&sig=",
    ]
    for one in forged:
        answer = await browser.go(one)
        assert answer.status_code == 403, one
        assert "ariane_session" not in cookies(answer)
    unknown = await browser.go(resigned(address, {"admin": "true", "nonce": "never-given"}))
    assert unknown.status_code == 403
    assert (await browser.go(resigned(address, {"moderator": "true"}))).status_code == 303


async def test_the_forum_refuses_what_we_did_not_sign(browser: Browser) -> None:
    begun = await browser.go(f"{ORIGIN}/moderation/sign-in/start")
    assert (await browser.go(f"{begun.headers['location']}0")).status_code == 422


async def test_a_session_ends_without_use_and_at_last_whatever_its_use(browser: Browser) -> None:
    await browser.go(await browser.until_returning("boss"))
    clock = browser.pages.clock
    for _ in range(11):
        clock.tick(3600)
        assert await browser.signed_in()
    clock.tick(3600)
    assert not await browser.signed_in()
    await browser.go(await browser.until_returning("boss"))
    clock.tick(2 * 3600 + 31)
    assert not await browser.signed_in()


async def test_looking_at_pages_writes_nothing_for_half_a_minute(browser: Browser, pool: Pool) -> None:
    await browser.go(await browser.until_returning("boss"))

    async def stored() -> list[tuple[object, ...]]:
        async with pool.connection() as conn:
            return await (await conn.execute("SELECT xmin::text, seen_at FROM moderator_sessions")).fetchall()

    at_first = await stored()
    browser.pages.clock.tick(30)
    assert await browser.signed_in()
    assert await stored() == at_first
    browser.pages.clock.tick(1)
    assert await browser.signed_in()
    assert await stored() != at_first


async def test_a_new_sign_in_ends_the_session_before_it(browser: Browser, pool: Pool) -> None:
    await browser.go(await browser.until_returning("boss"))
    old = browser.client.cookies["ariane_session"]
    await browser.go(await browser.until_returning("boss"))
    assert browser.client.cookies["ariane_session"] != old
    assert await rows(pool, "moderator_sessions") == 1


async def test_signing_out_ends_the_session_for_good(browser: Browser, pool: Pool) -> None:
    await browser.go(await browser.until_returning("boss"))
    secret = browser.client.cookies["ariane_session"]
    page = await browser.go(f"{ORIGIN}/moderation/sign-out")
    csrf = page.text.split('name="csrf" value="')[1].split('"')[0]
    out = await browser.client.post(
        f"{ORIGIN}/moderation/sign-out", data={"csrf": csrf, "forum": "yes"}, headers={"Origin": ORIGIN}
    )
    assert out.status_code == 303
    assert await rows(pool, "moderator_sessions") == 0
    browser.client.cookies.set("ariane_session", secret, domain="ariane.example", path="/moderation")
    assert not await browser.signed_in()
    at_forum = await browser.go(out.headers["location"])
    assert (at_forum.status_code, at_forum.headers["location"]) == (302, RETURN)
    assert (await browser.go(RETURN)).headers["location"] == "/moderation/sign-in"
    begun = await browser.go(f"{ORIGIN}/moderation/sign-in/start")
    assert (await browser.go(begun.headers["location"])).status_code == 200  # nobody is signed in there: it asks who


@pytest.mark.parametrize(
    ("csrf", "origin", "status"),
    [
        ("", ORIGIN, 403),
        ("0" * 64, ORIGIN, 403),
        ("right", "https://elsewhere.example", 403),
        ("right", "null", 403),
        ("right", None, 403),
        ("right", ORIGIN, 303),
    ],
)
async def test_a_form_needs_the_token_of_its_session_and_our_origin(
    pool: Pool, csrf: str, origin: str | None, status: int
) -> None:
    async with open_pages(pool) as pages:
        session = await pages.sign_in()
        token = session.csrf if csrf == "right" else csrf
        headers = {} if origin is None else {"Origin": origin}
        answer = await pages.client.post("/sign-out", data={"csrf": token}, headers=headers)
        assert answer.status_code == status


async def test_the_token_of_another_session_does_not_do(pool: Pool) -> None:
    async with open_pages(pool) as pages:
        other = await pages.sign_in(ADMIN)
        await pages.sign_in()
        answer = await pages.client.post("/sign-out", data={"csrf": other.csrf}, headers={"Origin": ORIGIN})
        assert answer.status_code == 403


async def test_without_a_secret_nobody_signs_in_and_the_page_says_what_to_do(pool: Pool) -> None:
    bare = SETTINGS.model_copy(
        update={"moderation": type(SETTINGS.moderation).model_validate({"public_url": "https://ariane.example"})}
    )
    async with open_pages(pool, bare) as pages:
        page = await pages.client.get("/sign-in")
        assert page.status_code == 503
        assert "moderation.connect_secret" in page.text
        assert "ariane signin-link" in page.text
        start = await pages.client.get("/sign-in/start")
        assert start.headers["location"] == "/moderation/sign-in"
        sso = base64.b64encode(urlencode({"nonce": "1", "return_sso_url": RETURN, "admin": "true"}).encode()).decode()
        forged = {"sso": sso, "sig": signature(b"", sso)}
        assert (await pages.client.get("/sign-in/return", params=forged)).status_code == 403
        assert (await pages.client.get("/")).status_code == 303


async def test_a_set_up_link_lets_in_once(pool: Pool) -> None:
    async with open_pages(pool) as pages:
        token = await pages.desk.sessions.new_link("root (link)", now=pages.clock())
        for _ in range(2):  # looking at it uses nothing up
            assert token in (await pages.client.get("/sign-in/link", params={"token": token})).text
        elsewhere = await pages.client.post(
            "/sign-in/link", data={"token": token}, headers={"Origin": "https://a.example"}
        )
        assert elsewhere.status_code == 403
        used = await pages.post("/sign-in/link", {"token": token})
        assert (used.status_code, used.headers["location"]) == (303, "/moderation/")
        assert "root (link)" in await pages.text("/")
        assert (await pages.post("/sign-in/link", {"token": token})).status_code == 403


async def test_a_set_up_link_is_used_within_ten_minutes_and_kept_as_a_hash(pool: Pool) -> None:
    async with open_pages(pool) as pages:
        token = await pages.desk.sessions.new_link("root", now=pages.clock())
        async with pool.connection() as conn:
            row = await (await conn.execute("SELECT token_sha256 FROM sign_in_links")).fetchone()
        assert row is not None
        assert token.encode() not in bytes(row[0])
        pages.clock.tick(601)
        assert (await pages.post("/sign-in/link", {"token": token})).status_code == 403
        assert (await pages.post("/sign-in/link", {})).status_code == 403


def test_the_command_prints_a_link(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARIANE_DATABASE__URL", database_url)
    monkeypatch.setenv("ARIANE_HOME", str(tmp_path))
    monkeypatch.setenv("ARIANE_MODERATION__PUBLIC_URL", "https://ariane.example/behind/")
    ran = CliRunner().invoke(ariane, ["signin-link", "--by", "Zoé"])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.startswith("https://ariane.example/behind/moderation/sign-in/link?token=")
    assert "once" in ran.stderr


@pytest.mark.parametrize(
    ("path", "safe"),
    [
        ("/answers?page=2&zone=weak", "/answers?page=2&zone=weak"),
        ("//elsewhere.example", "/"),
        ("/\\elsewhere.example", "/"),
        ("https://elsewhere.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nSet-Cookie: x=1", "/"),
        ("/sign-in/start", "/"),
        ("/api/flags", "/"),
        ("", "/"),
        ("/é", "/"),
        ("/" + "x" * 600, "/"),
    ],
)
def test_what_comes_after_a_sign_in_is_a_page_of_ours(path: str, safe: str) -> None:
    assert safe_next(path) == safe


async def test_a_body_that_is_too_large_or_no_form_is_refused(pool: Pool) -> None:
    async with open_pages(pool) as pages:
        await pages.sign_in()
        large = await pages.post("/sign-out", {"x": "y" * 400_000})
        assert large.status_code == 413
        odd = await pages.client.post(
            "/sign-out",
            content=b"csrf=%ff%fe\xff",
            headers={"Origin": ORIGIN, "Content-Type": "application/x-www-form-urlencoded"},
        )
        assert odd.status_code == 400


async def test_a_body_that_takes_too_long_is_not_waited_for(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "READ_SECONDS", 0.05)

    async def dripping() -> AsyncIterator[bytes]:
        yield b"token="
        await asyncio.Event().wait()

    async with open_pages(pool) as pages:
        kind = {"Origin": ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
        answer = await pages.client.post("/sign-in/link", content=dripping(), headers=kind)
        assert (answer.status_code, "did not arrive in time" in answer.text) == (408, True)


async def test_over_plain_http_the_cookie_can_still_be_kept(pool: Pool) -> None:
    local = SETTINGS.model_copy(
        update={
            "moderation": type(SETTINGS.moderation).model_validate(
                {"public_url": "http://127.0.0.1:4300", "connect_secret": CONNECT_SECRET}
            )
        }
    )
    async with open_pages(pool, local, clock=Clock(datetime.now(UTC))) as pages:
        token = await pages.desk.sessions.new_link("root", now=pages.clock())
        used = await pages.post("/sign-in/link", {"token": token})
        assert "secure" not in cookies(used)["ariane_session"].lower()
        assert "httponly" in cookies(used)["ariane_session"].lower()
