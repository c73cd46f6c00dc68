"""A member asks on the forum's pages and reads the answer there, on a phone and on a desk, with and without scripts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import open_page
from tests.e2e.loop import QUESTION, Loop, whole_loop

PHONE, DESK = 390, 1280
EVERY_PAGE = ("/", "/c/garden/1", "/t/x/10", "/new-topic", "/u/alice", "/search?q=radiator", "/simulator/switches")
HOSTILE = """
<script>document.title = "owned"</script><img src=x onerror="document.title='owned'">
[a](javascript:document.title='owned') <a href="javascript:alert(1)" onclick="alert(1)">b</a>
<style>body { display: none }</style> <iframe src="https://elsewhere.example"></iframe>

aVeryLongWordThatNoBrowserCanBreak{long}

| a | table | with | many | columns | that | is | wide | enough | to | need | its | own | scrolling |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 |

```
a line of code that is much longer than any telephone is wide, and must scroll within its own box only, not the page
```
""".replace("{long}", "x" * 300)


@pytest.fixture
async def loop(database_url: str, tmp_path: Path) -> AsyncIterator[Loop]:
    async with whole_loop(database_url, tmp_path) as running:
        yield running


async def fits(page: Page) -> bool:
    """Nothing of the page, once it has its styles, is wider than the window."""
    await page.wait_for_load_state()
    return bool(await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


async def in_view(post: Locator) -> bool:
    top: float = await post.evaluate("post => post.getBoundingClientRect().top")
    return 0 <= top < 900


@pytest.mark.parametrize("width", [PHONE, DESK])
async def test_the_answer_appears_by_itself_and_its_links_lead_to_the_cited_posts(
    loop: Loop, tmp_path: Path, width: int
) -> None:
    complaints: list[str] = []
    async with open_page(width, complaints) as page:
        await page.goto(f"{loop.room.forum.base_url}/t/x/10")
        await page.select_option("#who", "alice")  # submits by itself
        await expect(page.locator(".composer")).to_contain_text("You post as alice")
        await page.click("button.insert")
        await page.locator("#raw").press_sequentially(QUESTION.removeprefix("@ariane "))
        await page.get_by_role("button", name="Post reply").click()
        await expect(page.locator("#waiting")).to_be_visible()
        await expect(page.locator("#raw")).to_have_value("")
        await loop.drain()
        answer = page.locator(".post.by-bot")
        await expect(answer).to_have_count(1)  # without a reload
        await expect(page.locator("#waiting")).to_be_hidden()
        await expect(answer.locator("header")).to_contain_text("alice")
        assert await fits(page)
        await page.screenshot(path=tmp_path / f"answer-{width}.png", full_page=True)

        addresses = [await link.get_attribute("href") or "" for link in await answer.locator(".cooked a").all()]
        assert addresses[0].startswith(f"{loop.room.forum.base_url}/t/how-to-bleed-a-radiator/10/")
        for address in dict.fromkeys(addresses):
            await page.goto(address)
            cited = page.locator(".post.wanted")
            await expect(cited).to_have_id(f"post_{address.rsplit('/', 1)[1]}")
            assert await in_view(cited)
            assert await fits(page)
    assert complaints == []


@pytest.mark.parametrize("width", [PHONE, DESK])
async def test_no_page_overflows_or_complains_whatever_was_posted(loop: Loop, width: int) -> None:
    await loop.say(HOSTILE, by="newbie")
    complaints: list[str] = []
    async with open_page(width, complaints) as page:
        for path in (*EVERY_PAGE, "/simulator/deliveries"):
            await page.goto(loop.room.forum.base_url + path)
            assert await fits(page), path
            assert await page.title() != "owned"
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert complaints == []


async def test_everything_works_without_scripts(loop: Loop) -> None:
    complaints: list[str] = []
    async with open_page(DESK, complaints, scripts=False) as page:
        await page.goto(f"{loop.room.forum.base_url}/new-topic")
        await page.select_option("#as", "Zoé")
        await page.fill("#title", "My radiator makes a noise at night")
        await page.fill("#raw", QUESTION)
        await page.get_by_role("button", name="Create topic").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("My radiator makes a noise at night")
        await loop.drain()
        await page.reload()
        await expect(page.locator(".post.by-bot .cooked a").first).to_be_visible()
    assert complaints == []
