"""A moderator signs in by the forum, turns a switch and sees it count, on a phone and on a desk, in light and dark."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from service.app import create_app, listen
from service.moderation.site import PAGES
from service.simulator.room import Room
from service.wiring.moderation import moderation_desk
from tests.browser.conftest import open_page
from tests.e2e.loop import ANY_PORT, QUESTION, Loop, address, serving, whole_loop
from tests.moderators import CONNECT_SECRET

PHONE, DESK = 390, 1280


@dataclass(frozen=True, slots=True)
class Place:
    """The running forum and the pages beside it."""

    loop: Loop
    root: str


@pytest.fixture
async def place(database_url: str, tmp_path: Path) -> AsyncIterator[Place]:
    async with whole_loop(database_url, tmp_path, answering="off") as loop, pages_of(loop) as root:
        yield Place(loop, root)


@asynccontextmanager
async def pages_of(loop: Loop) -> AsyncIterator[str]:
    """The moderators' pages of this forum, which lets them know who is signed in; their address."""
    async with AsyncExitStack() as stack:
        socket = stack.enter_context(listen(ANY_PORT))
        chosen = {"public_url": address(socket), "connect_secret": CONNECT_SECRET}
        moderation = type(loop.settings.moderation).model_validate(chosen)
        settings = loop.settings.model_copy(update={"moderation": moderation})
        allow_sign_in(loop.room)
        app = create_app(settings, loop.services.pool, desk=moderation_desk(loop.services.pool, settings))
        await stack.enter_async_context(serving(app, socket))
        yield f"{address(socket)}/moderation"


def allow_sign_in(room: Room) -> None:
    assert isinstance(room.connect, dict)
    room.connect["127.0.0.1"] = CONNECT_SECRET


async def sign_in(page: Page, root: str, name: str) -> None:
    await page.goto(f"{root}/")
    await page.get_by_role("link", name="Sign in with the forum").click()
    await page.get_by_role("link", name=name, exact=True).click()


async def fits(page: Page) -> bool:
    """Nothing of the page, once it has its styles, is wider than the window."""
    await page.wait_for_load_state()
    return bool(await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.mark.parametrize("width", [PHONE, DESK])
async def test_a_moderator_signs_in_turns_a_switch_and_signs_out(place: Place, tmp_path: Path, width: int) -> None:
    complaints: list[str] = []
    async with open_page(width, complaints) as page:
        await sign_in(page, place.root, "boss")
        await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
        await page.get_by_role("link", name="Switches").click()
        answers = page.get_by_role("region", name="Answers off")
        await answers.get_by_label("To").select_option("shadow")
        await answers.get_by_label("Why").fill("a first look")
        await answers.get_by_role("button").click()
        await expect(page.get_by_role("status")).to_have_text("Changed.")
        await expect(page.get_by_role("row", name="a first look")).to_contain_text("boss (1)")
        assert await fits(page)
        await page.screenshot(path=tmp_path / f"flags-{width}.png", full_page=True)
        asked = await place.loop.say(QUESTION)
        await place.loop.drain()
        stored = await place.loop.trace(asked["id"])
        assert stored is not None
        assert stored.outcome == "shadowed"
        await page.get_by_role("link", name="Sign out").click()
        await page.get_by_role("button", name="Sign out here and of the forum").click()
        await expect(page.get_by_role("link", name="Sign in with the forum")).to_be_visible()
        await page.goto(f"{place.root}/flags")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert complaints == []


async def test_a_member_stays_outside(place: Place) -> None:
    complaints: list[str] = []
    async with open_page(DESK, complaints) as page:
        await sign_in(page, place.root, "alice")
        await expect(page.get_by_role("alert")).to_contain_text("moderators and administrators")
        await page.goto(f"{place.root}/flags")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert all("403" in complaint for complaint in complaints)


async def test_a_moderator_comes_in_while_the_forum_says_that_he_is_one(place: Place) -> None:
    members = place.loop.room.forum.members
    members[2] = replace(members[2], moderator=True)
    complaints: list[str] = []
    async with open_page(DESK, complaints) as page:
        await sign_in(page, place.root, "alice")
        await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
        members[2] = replace(members[2], moderator=False)
        await page.goto(f"{place.root}/sign-out")
        await page.get_by_role("button", name="Sign out here", exact=True).click()
        await page.get_by_role("link", name="Sign in with the forum").click()
        await expect(page.get_by_role("alert")).to_contain_text("moderators and administrators")
    assert all("403" in complaint for complaint in complaints)


async def test_forged_and_replayed_answers_of_the_forum_are_refused(place: Place) -> None:
    async with open_page(DESK, []) as page:
        returned: list[str] = []
        page.on("request", lambda sent: returned.append(sent.url) if "/sign-in/return?" in sent.url else None)
        await sign_in(page, place.root, "boss")
        await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
        [used] = returned
        await page.context.clear_cookies()
        for address in (used, f"{used}0", used.replace("sig=", "sig=0"), used.replace("sso=", "sso=bm9uY2U9MQ")):
            await page.goto(f"{place.root}/sign-in/start")  # at the forum, which asks who it is
            refused = await page.goto(address)
            assert refused is not None
            assert refused.status == 403
            await expect(page.get_by_role("alert")).to_be_visible()
            await page.goto(f"{place.root}/")
            await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.parametrize("width", [PHONE, DESK])
async def test_every_page_fits_can_be_read_and_reached_by_the_keyboard(place: Place, width: int) -> None:
    complaints: list[str] = []
    async with open_page(width, complaints) as page:
        await sign_in(page, place.root, "boss")
        await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
        for entry, _ in PAGES:
            for lang in ("en", "fr"):
                await page.goto(f"{place.root}{entry.path}?lang={lang}")
                assert await fits(page), (entry.path, lang)
                await page.emulate_media(color_scheme="light" if lang == "en" else "dark")
                assert await findings(page) == [], (entry.path, lang)
        await page.keyboard.press("Tab")
        await expect(page.locator(".skip")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("main")).to_be_focused()
    assert complaints == []


async def findings(page: Page) -> list[str]:
    """What axe-core finds on the page and calls serious or critical."""
    results = await Axe().run(page)
    assert results.response["passes"]  # it did look
    return [
        f"{found['id']}: {node['html']}"
        for found in results.response["violations"]
        if found["impact"] in ("serious", "critical")
        for node in found["nodes"]
    ]
