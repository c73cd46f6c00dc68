"""A moderator walks through an answer, posts it from shadow and makes a test question of it, on a phone and a desk."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from service.store.checked_questions import CheckedQuestionStore
from service.wiring.work import work_of
from tests.browser.conftest import open_page
from tests.browser.test_moderation import DESK, PHONE, Place, findings, fits, pages_of, sign_in
from tests.e2e.loop import QUESTION, whole_loop

NOTHING = "@ariane which stars can one see from a submarine that travels under the ice of Europa?"


@pytest.fixture
async def place(database_url: str, tmp_path: Path) -> AsyncIterator[Place]:
    async with whole_loop(database_url, tmp_path, answering="shadow") as loop, pages_of(loop) as root:
        yield Place(loop, root)


@pytest.mark.parametrize("width", [PHONE, DESK])
async def test_an_answer_is_read_posted_and_made_a_test_question(place: Place, tmp_path: Path, width: int) -> None:
    loop, complaints = place.loop, list[str]()
    asked = await loop.say(QUESTION)
    await loop.say(NOTHING)
    await loop.drain()
    await work_of(loop.services, asyncio.Event()).group_unanswered()
    async with open_page(width, complaints) as page:
        await sign_in(page, place.root, "boss")
        await page.get_by_role("link", name="Answers", exact=True).click()
        await page.get_by_label("Outcome").select_option("shadowed")
        await page.get_by_role("button", name="Show").click()
        assert await fits(page)
        await page.get_by_role("link", name="how do I bleed a radiator").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("One answer")
        for lang in ("fr", "en"):
            await page.goto(f"{place.root}/answers/{asked['id']}?lang={lang}")
            await page.emulate_media(color_scheme="light" if lang == "en" else "dark")
            assert await fits(page), lang
            assert await findings(page) == [], lang
        await page.screenshot(path=tmp_path / f"answer-{width}.png", full_page=True)

        await page.get_by_role("button", name="Post it").dblclick()
        await expect(page.get_by_role("status")).to_be_visible()
        await loop.drain()
        assert len(loop.replies(asked["post_number"])) == 1
        await page.reload()
        await expect(page.get_by_text("posted by a moderator")).to_be_visible()

        form = page.get_by_role("region", name="Make it a test question")
        await form.get_by_role("checkbox").first.check()
        await form.get_by_label("Note").fill("it answers just this")
        await form.get_by_role("button").click()
        await expect(page.get_by_role("status")).to_have_text("It is a test question now.")
        [made] = await CheckedQuestionStore(loop.services.pool).all()
        assert (made.slice, len(made.golden)) == ("paraphrase", 1)

        await page.goto(f"{place.root}/unanswered")
        await expect(page.get_by_role("main")).to_contain_text("submarine")
        assert await fits(page)
        assert await findings(page) == []
        await page.screenshot(path=tmp_path / f"unanswered-{width}.png", full_page=True)
    assert complaints == []
