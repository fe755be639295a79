"""The page behind the link of a mail, as people use it: by mouse and by keyboard, on a phone, at night."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from kit.audience import a_contact, a_topic, chooses
from kit.browser import Chromium, Tab, chromium, windows
from kit.unsubscribing import PROXY, Recipient, recipient
from kit.world import Team, world
from pillarbox.people.audit import OPERATOR
from pillarbox.unsubscribe.page_settings import DEFAULT, checked, save

FOCUSED = "(document.activeElement.innerText || document.activeElement.labels?.[0]?.innerText || '').trim()"
SAID = "document.querySelector('[role=status]').innerText"
HEADING = "document.querySelector('h1').innerText"
COLOURS = {"page_color": "#fff7e6", "text_color": "#6d6d6d", "button_color": "#d9534f"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


@asynccontextmanager
async def opened(url: str, folder: Path, browser: Chromium) -> AsyncIterator[tuple[Team, Tab]]:
    async with world(url, folder, started=False, trusted_proxy=PROXY) as pillarbox, browser.tab() as tab:
        yield await pillarbox.team(), tab


async def visits(tab: Tab, ada: Recipient) -> None:
    await tab.open(ada.team.world.url + ada.path)


async def test_leaving_changing_leaving_all_and_taking_it_back(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with opened(database_url, tmp_path, browser) as (team, tab):
        tides, notes = await a_topic(team, name="Tides"), await a_topic(team, name="Release notes")
        ada = await recipient(team, tides)
        await visits(tab, ada)
        await tab.presses("Unsubscribe from Tides")
        assert "no more mail about Tides" in await tab.run(SAID)
        assert await ada.choice(tides) == "opt_out"
        await tab.presses("Undo")
        assert await ada.choice(tides) == "opt_in"
        await tab.switches("Release notes")
        await tab.presses("Save choices")
        assert await ada.choice(notes) == "opt_out"
        await tab.presses("Undo")
        assert await ada.choice(notes) == "opt_in"
        await tab.presses("Unsubscribe from everything")
        assert await ada.is_unsubscribed()
        await tab.presses("Undo")
        assert await ada.is_unsubscribed() is False
        assert "subscribed again" in await tab.run(SAID)
        assert tab.violations == []


async def test_everything_is_done_with_the_keyboard(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with opened(database_url, tmp_path, browser) as (team, tab):
        tides = await a_topic(team, name="Tides")
        ada = await recipient(team, tides)
        await visits(tab, ada)
        reached = []
        for _ in range(4):
            await tab.keys("Tab")
            reached.append(" ".join((await tab.run(FOCUSED)).split()))
        assert reached == ["Unsubscribe from Tides", "Tides", "Save choices", "Unsubscribe from everything"]
        outline = await tab.run("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        await tab.keys("Shift+Tab", "Shift+Tab", "Space", "Tab")
        await tab.enters("Enter")
        assert await ada.choice(tides) == "opt_out"


async def test_scanners_that_follow_links_change_nothing(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    """LST-03: a browser that only looks, and one that loads the page ahead."""
    async with opened(database_url, tmp_path, browser) as (team, tab):
        ada = await recipient(team, await a_topic(team))
        await visits(tab, ada)
        for method in ("GET", "HEAD"):
            assert await tab.run(
                f"fetch(location.href, {{method: '{method}'}}).then(r => r.status, () => 0)"
            ) in (0, 200)
            answer = await ada.http.request(
                method, ada.path, headers=ada.headers(sec_purpose="prefetch;prerender")
            )
            assert answer.status_code == 200
        assert await ada.is_unsubscribed() is None


async def test_names_are_text(database_url: str, tmp_path: Path, browser: Chromium) -> None:
    async with opened(database_url, tmp_path, browser) as (team, tab):
        evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"[:50]
        topic = await a_topic(team, name=evil)
        await team.world.pool.execute("UPDATE topics SET description = $1", "</p><script>alert(2)</script>")
        await a_contact(team, "ada@quay.example")
        await team.world.pool.execute("UPDATE contacts SET first_name = $1", "<script>alert(3)</script>")
        ada = await recipient(team, topic)
        await visits(tab, ada)
        assert evil in await tab.run("document.body.innerText")
        await tab.presses(f"Unsubscribe from {evil}")
        assert evil in await tab.run(SAID)
        assert tab.dialogs == []
        assert tab.violations == []


async def test_nothing_keeps_people_out(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    """WCAG 2.1 AA, and a page no wider than the window."""
    async with opened(database_url, tmp_path, browser) as (team, tab):
        topic = await a_topic(team, name="Release notes")
        await a_topic(team, "opt_out", name="Averyveryveryveryverylongnamewithoutanyspaceinit")
        await team.world.pool.execute(
            "UPDATE topics SET description = 'What changed this week, and what will.'"
        )
        ada = await recipient(team, topic, email=await team.send())
        seen = windows(1100, 360, every=is_thorough)
        await visits(tab, ada)
        for name, button in (
            ("page", "Unsubscribe from Release notes"),
            ("left", "Unsubscribe from everything"),
            ("left-all", "Undo"),
            ("back", None),
        ):
            await tab.fits(f"unsubscribe-{name}", seen)
            if button is not None:
                await tab.presses(button)
        await tab.open(f"{team.world.url}/unsubscribe/nothing")
        await tab.fits("unsubscribe-nothing", seen)


async def test_a_page_with_the_colours_of_a_team_keeps_nobody_out(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    """Colours with the least contrast look the same by day and by night, and break no rule."""
    async with opened(database_url, tmp_path, browser) as (team, tab):
        fields = {**dict.fromkeys(asdict(DEFAULT), ""), **COLOURS, "title": "Letters", "footer": "Pier 9"}
        settings, faults = checked(fields)
        assert faults == {}
        await save(team.db, settings, OPERATOR, team.world.clock.now())
        seen = windows(1100, 360, every=is_thorough)
        await visits(tab, await recipient(team, await a_topic(team, name="Release notes")))
        for width, is_dark in seen:
            await tab.look(width, is_dark=is_dark)
            assert await tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 247, 230)"
        await tab.fits("unsubscribe-own", seen)
        await tab.presses("Unsubscribe from Release notes")
        await tab.fits("unsubscribe-own-left", seen)
        assert await tab.run(HEADING) == "Letters"
        assert tab.violations == []


async def test_private_topics_and_choices_of_others_are_not_shown(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with opened(database_url, tmp_path, browser) as (team, tab):
        staff = await a_topic(team, "opt_out", name="Staff", visibility="private")
        await chooses(team, await a_contact(team, "bob@quay.example"), staff, "opt_in")
        await visits(tab, await recipient(team))
        assert "Staff" not in await tab.run("document.body.innerText")
