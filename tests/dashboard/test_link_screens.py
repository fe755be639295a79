"""Checks of links beside the editor and in the last step of a broadcast, without a script."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.audience import a_segment
from kit.manual_world import manual_world, run_jobs
from kit.people import Visit, a_person, logged_in, text_of
from kit.receiver import receiver, status
from kit.world import Team, World
from pillarbox.dashboard.texts import has_text
from pillarbox.kernel.network.fetch_result import FAILURES
from pillarbox.people.roles import TeamRole


@pytest.fixture
@asynccontextmanager
async def here(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with manual_world(database_url, tmp_path, allow_private="127.0.0.1/32") as found:
        yield found


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    person = await a_person(team, f"{role.value}-{team.id.hex[-6:]}@harbor.example", role)
    return await logged_in(team.world, person)


async def a_template_with(team: Team, html: str) -> str:
    answer = await team.post("/templates", {"name": "Tides", "html": html})
    return f"/dashboard/templates/{answer.json()['id']}"


async def test_links_of_a_template_are_checked_and_shown_with_what_is_wrong(here: World) -> None:
    team = await here.team()
    ada = await browser(team)
    async with receiver() as at:
        at.answers(status(404), status(403))
        html = f'<a href="{at.url}">a</a><a href="http://10.0.0.1/">b</a>'
        html += f'<a href="{at.url}/other">c</a>'
        path = await a_template_with(team, html)
        page = text_of(await ada.get(path))
        assert "Not checked yet" in page
        assert "Refresh" not in page
        asked = await ada.send(path, f"{path}/links")
        assert asked.headers["location"] == f"{path}?done=links_asked#links"
        page = text_of(await ada.get(path))
        assert "Is being checked" in page
        assert "Refresh" in page
        await run_jobs(here)
        page = text_of(await ada.get(path))
        assert "The server answers with status 404." in page
        assert "Closed to programs" in page
        assert "It leads to an address that is not public." in page
        assert "Refresh" not in page


async def test_the_last_step_of_a_broadcast_has_the_links_of_all_variants(here: World) -> None:
    team = await here.team()
    ada = await browser(team)
    async with receiver() as at:
        segment_id = str(await a_segment(team))
        body = {
            "segment_id": segment_id,
            "from": "Ada <ada@harbor.example>",
            "subject": "Tides",
            "html": f'<a href="{at.url}/base">a</a>',
        }
        broadcast = (await team.post("/broadcasts", body)).json()["id"]
        test = {
            "percent": 20,
            "winner_by": "opens",
            "minutes": 60,
            "variants": [{"subject": "A"}, {"html": f'<a href="{at.url}/other">b</a>'}],
        }
        answer = await team.call("PUT", f"/broadcasts/{broadcast}/plan", {"ab_test": test})
        assert answer.status_code == 200, answer.text
        path = f"/dashboard/broadcasts/{broadcast}"
        asked = await ada.send(f"{path}?step=review", f"{path}/links")
        assert asked.headers["location"] == f"{path}?step=review&done=links_asked#links"
        await run_jobs(here)
        page = text_of(await ada.get(f"{path}?step=review"))
        assert page.count("Fine") == 2
        assert sorted(arrival.target for arrival in at.arrivals) == [
            "HEAD /in/base HTTP/1.1",
            "HEAD /in/other HTTP/1.1",
        ]
        editor = await ada.send(f"{path}/editor", f"{path}/editor/links")
        assert editor.headers["location"] == f"{path}/editor?done=links_asked#links"


def test_every_failure_of_a_request_has_a_text() -> None:
    assert [kind for kind in FAILURES if not has_text(f"links.reason.{kind}")] == []


async def test_viewers_see_the_links_and_begin_nothing(here: World) -> None:
    team, other = await here.team(), await here.team("Quay")
    path = await a_template_with(team, '<a href="https://pier.example/">a</a>')
    ben = await browser(team, TeamRole.VIEWER)
    page = await ben.get(path)
    assert "https://pier.example/" in text_of(page)
    assert "Check the links" not in text_of(page)
    assert (await ben.post(f"{path}/links")).status_code == 403
    cleo = await browser(other)
    assert (await cleo.send("/dashboard/templates", f"{path}/links")).status_code == 404
    assert await here.pool.fetchval("SELECT count(*) FROM link_checks") == 0
