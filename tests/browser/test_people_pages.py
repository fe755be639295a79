"""Setting up, logging in and out in a browser: by mouse and keyboard, on a phone, at night."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.browser import Chromium, Tab, chromium
from kit.people import PASSWORD, Person
from kit.world import World, world
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import links

HEADING = "document.querySelector('h1').innerText"
PROBLEM = "document.querySelector('[role=alert]')?.innerText || ''"
PATH = "location.pathname"
FOCUSED = "document.activeElement.id || document.activeElement.innerText"
COOKIES = "document.cookie"
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


@asynccontextmanager
async def opened(url: str, folder: Path, browser: Chromium) -> AsyncIterator[tuple[World, Tab]]:
    async with world(url, folder, started=False) as pillarbox, browser.tab() as tab:
        yield pillarbox, tab


async def fills(tab: Tab, **fields: str) -> None:
    for name, value in fields.items():
        await tab.run(f"document.getElementById({name!r}).value = {value!r}")


async def logs_in(tab: Tab, pillarbox: World, person: Person, password: str = PASSWORD) -> None:
    await tab.open(f"{pillarbox.url}/login")
    await fills(tab, email=person.email, password=password)
    await tab.presses("Log in")


async def first_link(pillarbox: World) -> str:
    """What the first start prints."""
    team = await pillarbox.team("My team", email="admin@localhost")
    async with transaction(pillarbox.pool) as conn:
        token = await links.make(conn, pillarbox.app.need(Ids).now(), links.Kind.SET_UP, team_id=team.id)
    return f"{pillarbox.url}/set-up/{token}"


async def test_the_owner_sets_up_an_account_logs_out_and_in(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with opened(database_url, tmp_path, browser) as (pillarbox, tab):
        link = await first_link(pillarbox)
        await tab.open(link)
        await fills(tab, email="ada@quay.example", name="Ada", password="password123")
        await tab.presses("Set up and log in")
        assert "Too many people use this one" in await tab.run("document.body.innerText")
        await fills(tab, password=PASSWORD)
        await tab.presses("Set up and log in")
        assert await tab.run(HEADING) == "Your account"
        assert await tab.run(COOKIES) == ""
        await tab.presses("Log out")
        assert await tab.run(HEADING) == "Log in"
        await fills(tab, email="ADA@quay.example", password=PASSWORD)
        await tab.presses("Log in")
        assert await tab.run(PATH) == "/account"
        assert "My team" in await tab.run("document.body.innerText")
        await tab.presses("Log out")
        await tab.open(link)
        assert await tab.run(HEADING) == "This link does not work any more"
        assert tab.violations == []
