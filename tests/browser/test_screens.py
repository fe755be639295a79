"""Every screen of the table in a browser: in English and German, wide and narrow, light and dark.

With PILLARBOX_PICTURES=<folder> each screen is also kept as a picture there.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.browser import TOO_WIDE, Chromium, Tab, Window, chromium, windows
from kit.browser_forms import fills, logs_in
from kit.people import an_operator
from kit.screens import address_of, some_contacts, some_domains, some_mail, table
from kit.world import Team, world
from pillarbox.dashboard.frame.screen_table import Screen

pytestmark = pytest.mark.sweep

CUT = "[...document.querySelectorAll('.card')].filter((c) => c.scrollWidth > c.clientWidth).length"
IS_SCREEN = "document.querySelector('aside.side nav a') !== null"
STATE = f"[document.documentElement.lang, {IS_SCREEN}, {TOO_WIDE}, {CUT}]"
SIZES = windows(1280, 360, every=True)
SCREENS = [screen for screen in table() if not screen.path.endswith(("/html", "/csv"))]


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


def sizes(number: int, *, every: bool) -> list[Window]:
    """Return the windows in which a screen is seen: all four if `every` or if they become pictures, else one
    that is wide and one that is narrow, one by day and one by night. The next number begins with another of
    the four, and the number after that ends with it."""
    if every or "PILLARBOX_PICTURES" in os.environ:
        return list(SIZES)
    first = number % len(SIZES)
    return [SIZES[first], SIZES[len(SIZES) - 1 - first]]


async def look_at(tab: Tab, url: str, name: str, seen: Sequence[Window], language: str = "en") -> None:
    """See the page in each of these windows; it fits. axe-core looks in the last one, or in all four, and
    finds no barrier."""
    await tab.look(seen[0][0], is_dark=seen[0][1])
    await tab.open(url, watch=False)
    for width, is_dark in seen:
        await tab.look(width, is_dark=is_dark)
        assert await tab.run(STATE) == [language, True, False, 0], (url, width, is_dark)
        await tab.picture(name, width, is_dark=is_dark)
        if len(seen) == len(SIZES) or (width, is_dark) == seen[-1]:
            assert await tab.barriers() == [], (url, width, is_dark)


def name_of(screen: Screen) -> str:
    """Return the name of its picture."""
    return screen.path.strip("/").replace("/", "-").replace("{", "").replace("}", "") or "start"


@asynccontextmanager
async def a_used_team(url: str, folder: Path, browser: Chromium) -> AsyncIterator[tuple[Team, Tab]]:
    """A team with something on every screen, and the browser of an operator who has logged in."""
    async with world(url, folder, started=False) as here, browser.tab() as tab:
        team = await here.team("Harbor")
        await some_mail(team)
        await some_domains(team)
        await some_contacts(team)
        await logs_in(tab, here, await an_operator(team, "ada@harbor.example"), "/dashboard")
        yield team, tab
        await tab.rest()
        assert tab.violations == []
        assert tab.dialogs == []


async def test_every_screen_fits_and_keeps_nobody_out(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    async with a_used_team(database_url, tmp_path, browser) as (team, tab):
        for number, screen in enumerate(SCREENS):
            url = team.world.url + await address_of(screen, team)
            await look_at(tab, url, name_of(screen), sizes(number, every=is_thorough))


async def test_every_screen_fits_in_german(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    """German words are longer. axe-core looks in the window that it has not seen in English."""
    async with a_used_team(database_url, tmp_path, browser) as (team, tab):
        await tab.open(f"{team.world.url}/account")
        await fills(tab, language="de")
        await tab.presses("Use this language")
        for number, screen in enumerate(SCREENS):
            url = team.world.url + await address_of(screen, team)
            seen = sizes(number, every=is_thorough)[::-1]
            await look_at(tab, url, f"{name_of(screen)}-de", seen, "de")
