"""Every screen of the table in a browser: wide and narrow, light and dark, with and without its script.

With PILLARBOX_PICTURES=<folder> each screen is also kept as a picture there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kit.browser import Chromium, Tab, chromium
from kit.browser_forms import fills, logs_in
from kit.people import an_operator
from kit.screens import address_of, some_domains, some_mail, table
from kit.world import world
from pillarbox.dashboard.frame.screen_table import Screen

TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
CUT = "[...document.querySelectorAll('.card')].filter((c) => c.scrollWidth > c.clientWidth).length"
IS_SCREEN = "document.querySelector('aside.side nav a') !== null"
GERMAN_SIZES = ((1280, False), (360, False))
SIZES = ((1280, False), (1280, True), (360, False), (360, True))
SCREENS = [screen for screen in table() if not screen.path.endswith(("/html", "/csv"))]


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


def folder() -> Path | None:
    """Where pictures are kept, if they are wanted."""
    name = os.environ.get("PILLARBOX_PICTURES")
    return None if name is None else Path(name)


async def look_at(tab: Tab, url: str, screen: Screen, sizes: Sequence[tuple[int, bool]] = SIZES) -> None:
    """See the screen in each size; it fits, and keeps nobody out."""
    for width, is_dark in sizes:
        await tab.look(width, is_dark=is_dark)
        await tab.open(url)
        assert await tab.run(IS_SCREEN), (screen.path, await tab.run("document.body.innerText"))
        assert not await tab.run(TOO_WIDE), (screen.path, width)
        assert not await tab.run(CUT), (screen.path, width)
        if (pictures := folder()) is not None:
            name = screen.path.strip("/").replace("/", "-").replace("{", "").replace("}", "") or "start"
            pictures.mkdir(parents=True, exist_ok=True)
            await tab.picture(pictures / f"{name}-{width}-{'dark' if is_dark else 'light'}.png")
    assert await tab.barriers() == [], screen.path


async def test_every_screen_fits_a_telephone_in_german(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    """German words are longer."""
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        team = await here.team("Harbor")
        await some_mail(team)
        await some_domains(team)
        ada = await an_operator(team, "ada@harbor.example")
        await logs_in(tab, here, ada, "/dashboard")
        await tab.open(f"{here.url}/account")
        await fills(tab, language="de")
        await tab.presses("Use this language")
        for screen in SCREENS:
            await look_at(tab, here.url + await address_of(screen, team), screen, GERMAN_SIZES)
            assert await tab.run("document.documentElement.lang") == "de", screen.path


async def test_every_screen_fits_and_keeps_nobody_out(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        team = await here.team("Harbor")
        await some_mail(team)
        await some_domains(team)
        ada = await an_operator(team, "ada@harbor.example")
        await logs_in(tab, here, ada, "/dashboard")
        for screen in SCREENS:
            await look_at(tab, here.url + await address_of(screen, team), screen)
        assert tab.violations == []
        assert tab.dialogs == []
