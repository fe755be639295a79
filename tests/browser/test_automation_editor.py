"""The editor of automations in a browser: each step's form fits, and a box of the picture opens it."""

from __future__ import annotations

from pathlib import Path

from kit.browser import chromium
from kit.browser_forms import fills, logs_in
from kit.people import a_person
from kit.screens import a_series
from kit.world import world

TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
BOX = "document.querySelector('.graph a[href=\"#edit-2\"]').focus()"


async def test_steps_are_opened_from_the_picture_and_nothing_is_lost(
    database_url: str, tmp_path: Path
) -> None:
    with chromium() as browser:
        async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
            team = await here.team("Harbor")
            path = f"/dashboard/automations/{await a_series(team)}/edit"
            await logs_in(tab, here, await a_person(team, "ada@harbor.example"), "/dashboard")
            for step in (0, 2, 3, 4, 5):
                await tab.look(360, is_dark=step == 2)
                await tab.open(f"{here.url}{path}?step={step}")
                assert not await tab.run(TOO_WIDE), step
                assert await tab.barriers() == [], step
                await tab.picture(f"editor-step-{step}", 360, is_dark=step == 2)
            await fills(tab, duration="3 days")
            await tab.run(BOX)
            await tab.enters("Enter")
            assert await tab.run("document.getElementById('timeout').value") == "2 days"
            assert "3 days" in await tab.run("document.querySelector('.graph').textContent")
            assert tab.violations == []
