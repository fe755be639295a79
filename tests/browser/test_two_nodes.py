"""Two people at two nodes of one installation: both see what happens, without a reload."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.browser import PATIENCE, Chromium, Tab, chromium
from kit.browser_forms import fills
from kit.people import PASSWORD, Person, a_person
from kit.world import World, world
from pillarbox.kernel.security.secrets import KeyRing

ROWS = "[...document.querySelectorAll('main tbody tr')].map(row => row.innerText).join()"
MARK = "window.isTheSamePage"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


async def looks_at_emails(tab: Tab, node: World, person: Person) -> None:
    await tab.open(f"{node.url}/login")
    await fills(tab, email=person.email, password=PASSWORD)
    await tab.presses("Log in")
    await tab.open(f"{node.url}/dashboard/emails")
    await tab.run(f"{MARK} = true")


async def sees(tab: Tab, words: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while words not in await tab.run(ROWS):
            await asyncio.sleep(0.05)


async def test_a_change_at_one_node_is_seen_in_the_browsers_of_both(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    given = {"secret_key": KeyRing.generate_text(), "blob_url": f"file:{blobs}"}
    async with (
        world(database_url, tmp_path / "one", **given) as one,
        world(database_url, tmp_path / "two", **given) as two,
        browser.tab() as ada,
        browser.tab() as ben,
    ):
        team = await one.team()
        await team.domain()
        await looks_at_emails(ada, one, await a_person(team, "ada@harbor.example"))
        await looks_at_emails(ben, two, await a_person(team, "ben@harbor.example"))
        for subject in ("The first of the day", "The second of the day"):
            await team.send(subject=subject)
            for tab in (ada, ben):
                await sees(tab, subject)
                assert await tab.run(MARK)
