"""The machine's Chromium by Playwright: one browser for a module of tests, a fresh profile for each tab."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from base64 import b64decode
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, CDPSession, Dialog, Page, Playwright, async_playwright

T = TypeVar("T")

NAMES = ("chromium", "chromium-browser", "google-chrome")
UNWANTED = (
    # What Playwright switches off too: the last list counts.
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding", "Translate"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints"),
    *("NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
    # A process in reserve and a new frame for each page: half of what opening a page costs.
    *("SpareRendererForSitePerProcess", "RenderDocument"),
)
FLAGS = (
    *("--disable-quic", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"),
    "--num-raster-threads=1",
    f"--disable-features={','.join(UNWANTED)}",
)
SIZE = {"width": 1100, "height": 850}
QUIET = 0.15
PATIENCE = 60.0
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}
BARRIERS = """
    async (rules) => (await axe.run(rules)).violations.flatMap(
        (rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 120)}`))
"""
AXE = Axe().axe_script

Window = tuple[int, bool]
"""A width, and whether it is night."""


def windows(*widths: int, every: bool) -> list[Window]:
    """Return what a page is looked at in: each width once, by day and by night in turn; both in each width
    if `every`."""
    if every:
        return [(width, is_dark) for width in widths for is_dark in (False, True)]
    return [(width, bool(number % 2)) for number, width in enumerate(widths)]


def needs_chromium() -> str:
    """Return the path of a Chromium; skip the test where there is none. Nothing is downloaded."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium on this machine: the pages are not looked at in a browser")


class Tab:
    """One page. `dialogs` holds every alert, `violations` what a policy of the page refused."""

    def __init__(self, chromium: Chromium, page: Page) -> None:
        self._chromium = chromium
        self._page = page
        self.dialogs: list[str] = []
        self.violations: list[str] = []
        self._passkeys: tuple[CDPSession, str]

    async def open(self, url: str, *, watch: bool = True) -> None:
        """Go there, and return when all that it wants at the start has been asked for."""
        await self._chromium.does(self._page.goto(url))
        if watch:
            await self.rest()

    async def rest(self) -> None:
        """Wait a while: that nothing more comes can only be seen by watching."""
        await asyncio.sleep(QUIET)

    async def run(self, script: str) -> Any:
        """Return the value of an expression in the page's own world."""
        return await self._chromium.does(self._page.evaluate(script))

    async def submit(self, form: str) -> None:
        """Send a form, and return when its answer is shown."""

        async def submitted() -> None:
            async with self._page.expect_navigation():
                await self._page.locator(form).evaluate("form => form.requestSubmit()")

        await self._chromium.does(submitted())

    async def look(self, width: int, *, is_dark: bool) -> None:
        """See the page in a window of that width, by day or by night."""
        scheme: Literal["dark", "light"] = "dark" if is_dark else "light"
        await self._chromium.does(self._page.set_viewport_size({"width": width, "height": SIZE["height"]}))
        await self._chromium.does(self._page.emulate_media(color_scheme=scheme))

    async def picture(self, name: str, width: int, *, is_dark: bool) -> None:
        """Keep what the page looks like, all of it, where PILLARBOX_PICTURES names a folder."""
        if folder := os.environ.get("PILLARBOX_PICTURES"):
            path = Path(folder) / f"{name}-{width}-{'dark' if is_dark else 'light'}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            await self._chromium.does(self._page.screenshot(path=path, full_page=True))

    async def fits(self, name: str, seen: Sequence[Window]) -> None:
        """See the page in each of these windows, and in the first again: it is no wider. axe-core finds no
        barrier."""
        for width, is_dark in seen:
            await self.look(width, is_dark=is_dark)
            assert not await self.run(TOO_WIDE), (name, width)
            await self.picture(name, width, is_dark=is_dark)
            assert await self.barriers() == [], (name, width, is_dark)
        width, is_dark = seen[0]
        await self.look(width, is_dark=is_dark)

    async def small_picture(self, path: Path) -> None:
        """Keep what the window shows of the page, as a small WebP."""

        async def taken() -> str:
            session = await self._page.context.new_cdp_session(self._page)
            answer = await session.send("Page.captureScreenshot", {"format": "webp", "quality": 80})
            return str(answer["data"])

        path.write_bytes(b64decode(await self._chromium.does(taken())))

    async def keys(self, *names: str) -> None:
        """Press these keys, one after the other."""
        for name in names:
            await self._chromium.does(self._page.keyboard.press(name))

    async def enters(self, name: str) -> None:
        """Press a key that sends a form, and return when its answer is shown."""

        async def entered() -> None:
            async with self._page.expect_navigation():
                await self._page.keyboard.press(name)

        await self._chromium.does(entered())

    async def presses(self, button: str) -> None:
        """Press the button of that name, as a reader finds it, and return when the answer is shown."""

        async def pressed() -> None:
            async with self._page.expect_navigation():
                await self._page.get_by_role("button", name=button, exact=True).click()

        await self._chromium.does(pressed())

    async def opens(self, dialog: str) -> None:
        """Open the dialog of that name."""
        named = self._page.get_by_text(dialog, exact=True).or_(self._page.get_by_label(dialog, exact=True))
        summary = self._page.locator("summary").and_(named)
        await self._chromium.does(summary.click())

    async def switches(self, box: str) -> None:
        """Change the checkbox of that name."""
        await self._chromium.does(self._page.get_by_role("checkbox", name=box, exact=True).click())

    async def barriers(self) -> list[str]:
        """Return what axe-core says keeps people out (rules of WCAG 2.1, levels A and AA), as
        'rule: element'."""
        if not await self.run("'axe' in window"):
            await self.run(AXE)
        return list(await self._chromium.does(self._page.evaluate(BARRIERS, RULES)))

    async def arrives(self, path: str) -> None:
        """Return when that path is shown, whoever has gone there."""
        await self._chromium.does(self._page.wait_for_url(lambda url: urlsplit(url).path == path))

    async def has_passkeys(self, *, has_lock: bool = True) -> None:
        """Give the machine a place for passkeys, which opens by a lock (PIN, finger, face) at once."""
        session: CDPSession = await self._chromium.does(self._page.context.new_cdp_session(self._page))
        await self._chromium.does(session.send("WebAuthn.enable"))
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": has_lock,
            "isUserVerified": has_lock,
            "automaticPresenceSimulation": True,
        }
        made = session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        self._passkeys = session, (await self._chromium.does(made))["authenticatorId"]

    async def passkeys(self) -> list[dict[str, Any]]:
        """Return what is kept in that place."""
        session, place = self._passkeys
        asked = session.send("WebAuthn.getCredentials", {"authenticatorId": place})
        return list((await self._chromium.does(asked))["credentials"])

    async def loses_passkeys(self) -> None:
        """Empty that place."""
        session, place = self._passkeys
        await self._chromium.does(session.send("WebAuthn.clearCredentials", {"authenticatorId": place}))

    async def watch(self) -> None:
        """Note dialogs and refusals from now on."""
        self._page.on("dialog", self._asked)
        session: CDPSession = await self._page.context.new_cdp_session(self._page)
        session.on("Log.entryAdded", self._logged)
        await session.send("Log.enable")

    async def _asked(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        await dialog.accept()

    def _logged(self, params: dict[str, Any]) -> None:
        if params["entry"]["source"] == "security":
            self.violations.append(params["entry"]["text"])


class Chromium:
    """The browser. It lives in an event loop of its own, for each test has another one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    async def does(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work in the browser's loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    @asynccontextmanager
    async def tab(self) -> AsyncIterator[Tab]:
        """Yield a page with an empty profile."""
        page = await self.does(self._page())
        tab = Tab(self, page)
        await self.does(tab.watch())
        try:
            yield tab
        finally:
            await self.does(page.context.close())

    async def start(self, program: str) -> None:
        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(executable_path=program, args=FLAGS)

    async def close(self) -> None:
        if self._browser is not None:
            await self._browser.close()
        if self._playwright is not None:
            await self._playwright.stop()

    async def _page(self) -> Page:
        assert self._browser is not None
        context = await self._browser.new_context(viewport=SIZE)
        return await context.new_page()


@contextmanager
def chromium() -> Iterator[Chromium]:
    """Yield a browser, ended with everything that belongs to it."""
    program = needs_chromium()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="browser")
    thread.start()
    browser = Chromium(loop)
    try:
        asyncio.run_coroutine_threadsafe(browser.start(program), loop).result(PATIENCE)
        yield browser
    finally:
        asyncio.run_coroutine_threadsafe(browser.close(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
