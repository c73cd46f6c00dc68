"""Takes the pictures: headless Chromium, one language after the other, each a part of a page as wide as a guide."""

import asyncio
from pathlib import Path

from playwright.async_api import FloatRect, Page, async_playwright

from service.domain import Lang
from service.moderation.wording import Words, texts
from tests.browser.conftest import ARGUMENTS, CHROMIUM, PATIENCE_MS
from tests.pictures.album import Picture, album
from tests.pictures.scene import Scene
from tests.pictures.squeeze import squeezed

WIDTH = 980
MARGIN = 12


async def take_all(scene: Scene, folder: Path) -> list[Path]:
    """Every picture in every language of the pages, as `name.lang.png` in an existing folder; gives the files."""
    made = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            for lang in texts():
                context = await browser.new_context(
                    viewport={"width": WIDTH, "height": 900}, locale=lang, color_scheme="light", reduced_motion="reduce"
                )
                page = await context.new_page()
                page.set_default_timeout(PATIENCE_MS)
                for picture in album(scene, lang):
                    path = folder / f"{picture.name}.{lang}.png"
                    png = await _taken(page, picture, lang)
                    path.write_bytes(await asyncio.to_thread(squeezed, png))
                    made.append(path)
                await context.close()
        finally:
            await browser.close()
    return made


async def _taken(page: Page, picture: Picture, lang: Lang) -> bytes:
    await page.goto(picture.url)
    if picture.prepare:
        await picture.prepare(page, Words(lang))
    return await page.screenshot(full_page=True, clip=await _part(page, picture))


async def _part(page: Page, picture: Picture) -> FloatRect:
    """From the top of the first element to the bottom of the last, of the whole width."""
    first = await page.locator(picture.first).first.bounding_box()
    last = await page.locator(picture.last).first.bounding_box()
    assert first and last, picture.name
    scrolled = float(await page.evaluate("window.scrollY"))
    top = max(0.0, first["y"] + scrolled - MARGIN)
    height = min(picture.height, last["y"] + last["height"] + scrolled + MARGIN - top)
    return {"x": 0, "y": top, "width": WIDTH, "height": height}
