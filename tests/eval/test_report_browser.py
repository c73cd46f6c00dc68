"""The report in headless Chromium, on a phone and on a desk: nothing overflows, overlaps or complains."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.async_api import Page, expect

from eval.commands.report import command
from tests.browser.conftest import CHROMIUM, open_page
from tests.eval.report_runs import MAKERS, a_dataset

PHONE, DESK = 390, 1280
LEAST_TEXT_PX = 9
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"no {CHROMIUM} here (Debian: apt install chromium)"),
]

OVERLAPS = """
() => {
  const apart = (a, b) =>
    a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
  const begin = (node) => node.textContent.trim().slice(0, 40);
  const found = [];
  const check = (nodes) => {
    const all = [...nodes].map(node => [node, node.getBoundingClientRect()]);
    const boxes = all.filter(([, box]) => box.width && box.height);
    boxes.forEach(([one, a], at) => boxes.slice(at + 1).forEach(([other, b]) => {
      if (!apart(a, b)) found.push(`${begin(one)} / ${begin(other)}`);
    }));
  };
  document.querySelectorAll("figure svg").forEach(svg => check(svg.querySelectorAll("text")));
  document.querySelectorAll("figure").forEach(figure => check(figure.children));
  document.querySelectorAll(".bars li, .facts, tr, nav ul").forEach(row => check(row.children));
  document.querySelectorAll("main > section, section > *").forEach(part => check(part.parentElement.children));
  return found;
}
"""
OUTSIDE = """
() => [...document.querySelectorAll("main *, header *")]
  .filter(node => !node.closest(".scroll, .foreign, .skip") && !(node instanceof SVGElement))
  .filter(node => node.getBoundingClientRect().right > window.innerWidth + 1)
  .map(node => node.outerHTML.slice(0, 100))
"""
TEXT_SIZES = """
() => [...document.querySelectorAll("figure svg text")]
  .map(node => parseFloat(getComputedStyle(node).fontSize) * node.ownerSVGElement.getBoundingClientRect().width / 360)
"""

BRIGHTNESS = r"""
(name) => getComputedStyle(document.body)[name].match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0)
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a run of each command, in French, whose words are longer."""
    home = tmp_path_factory.mktemp("home")
    dataset = a_dataset(home / "forum")
    made = {}
    for name, make in MAKERS.items():
        make(home, dataset)
        run, out = make(home, dataset, day=1), home / name
        arguments = [str(run.folder), "--out", str(out), "--lang", "fr"]
        done = CliRunner(env={"ARIANE_HOME": str(home)}).invoke(command, arguments)
        assert done.exit_code == 0, done.exception or done.output
        made[name] = out / "report.html"
    return made


async def opened(page: Page, path: Path) -> None:
    await page.goto(path.as_uri())
    await page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("name", MAKERS)
async def test_nothing_overflows_overlaps_or_complains(pages: dict[str, Path], name: str, width: int) -> None:
    complaints: list[str] = []
    async with open_page(width, complaints) as page:
        await opened(page, pages[name])
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert await page.evaluate(OUTSIDE) == []
        assert await page.evaluate(OVERLAPS) == []
        assert all(size >= LEAST_TEXT_PX for size in await page.evaluate(TEXT_SIZES))
        assert "owned" not in await page.title()
    assert complaints == []


async def test_it_is_read_with_the_keyboard_and_without_scripts(pages: dict[str, Path]) -> None:
    complaints: list[str] = []
    async with open_page(DESK, complaints, scripts=False) as page:
        await page.goto(pages["retrieve"].as_uri())
        await page.keyboard.press("Tab")
        await expect(page.locator(".skip")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#verdict")).to_be_in_viewport()
        first = page.locator("details.trace").first
        await expect(first.locator(".inside")).to_be_hidden()
        await first.locator("> summary").focus()
        await page.keyboard.press("Enter")
        await expect(first.locator(".inside")).to_be_visible()
    assert complaints == []


async def test_dark_and_print_are_read_too(pages: dict[str, Path]) -> None:
    """Light text on a dark page where that is preferred; on paper closed details are open."""
    complaints: list[str] = []
    async with open_page(DESK, complaints) as page:
        await page.goto(pages["retrieve"].as_uri())
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            ink, paper = [await page.evaluate(BRIGHTNESS, name) for name in ("color", "backgroundColor")]
            assert (ink > paper) == (scheme == "dark") and abs(ink - paper) > 450
        await page.emulate_media(media="print")
        await expect(page.locator("details.trace .inside").first).to_be_visible()
    assert complaints == []
