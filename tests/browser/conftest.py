"""A page of headless Chromium that notes every complaint; the tests skip where Debian's chromium is absent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import ConsoleMessage, Page, Request, Response, async_playwright

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 15_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if not CHROMIUM.exists():
                item.add_marker(pytest.mark.skip(reason=f"no {CHROMIUM} here (Debian: apt install chromium)"))


@asynccontextmanager
async def open_page(width: int, complaints: list[str], *, scripts: bool = True) -> AsyncIterator[Page]:
    """A new page that wide; errors of its console, scripts and requests are added to `complaints`."""

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):  # a violation of the content security policy is an error here
            complaints.append(f"console: {message.text}")

    def on_response(response: Response) -> None:
        if response.status >= 400:
            complaints.append(f"{response.status} {response.url}")

    def on_failure(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the next page was asked for before this was here
            complaints.append(f"failed: {request.url} ({request.failure})")

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            context = await browser.new_context(
                viewport={"width": width, "height": 900}, java_script_enabled=scripts, reduced_motion="reduce"
            )
            page = await context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.on("console", on_console)
            page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
            page.on("requestfailed", on_failure)
            page.on("response", on_response)
            yield page
        finally:
            await browser.close()
