"""Screens of the log of requests: the list with its filters, one request, and how it is sent again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from kit.people import Visit, a_person, heading, logged_in, text_of
from kit.world import Team, World, world
from pillarbox.logs import filtering
from pillarbox.people.roles import TeamRole


@pytest.fixture
@asynccontextmanager
async def here(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with world(database_url, tmp_path, started=False) as made:
        yield made


async def browser(team: Team) -> Visit:
    person = await a_person(team, f"viewer-{team.id.hex[:6]}@harbor.example", TeamRole.VIEWER)
    return await logged_in(team.world, person)


async def refused(team: Team, subject: str = "x") -> str:
    """A request that the API refused; its id."""
    answer = await team.post("/emails", {"from": "nobody", "to": "ada@quay.example", "subject": subject})
    assert answer.status_code == 422
    return answer.headers["x-request-id"]


async def test_a_request_shows_its_bodies_and_how_to_send_it_again(here: World) -> None:
    team = await here.team("Harbor")
    log_id = await refused(team, "it's <b>late</b>")
    shown = await (await browser(team)).get(f"/dashboard/logs/{log_id}")
    assert heading(shown) == "POST /emails"
    assert "422" in text_of(shown)
    assert "validation_error" in text_of(shown)
    assert "<b>late</b>" not in shown.text
    assert "curl -X POST" in text_of(shown)
    assert "it'\\''s <b>late</b>" in text_of(shown).replace("&lt;", "<")
    assert "re_" not in text_of(shown).replace("re_…", "")


async def test_the_list_is_filtered_by_status_method_path_and_program(here: World) -> None:
    team = await here.team("Harbor")
    log_id = await refused(team)
    for number in range(3):
        await team.post("/topics", {"name": f"T{number}", "default_subscription": "opt_in"})
    viewer = await browser(team)
    assert f"/dashboard/logs/{log_id}" in (await viewer.get("/dashboard/logs")).text
    for query, fits in (
        ("status=4xx", True),
        ("status=422&method=POST", True),
        ("status=2xx", False),
        ("status=404", False),
        ("method=GET", False),
        ("path=EMAILS", True),
        ("path=%25", False),
        ("agent=nobody", False),
        ("since=1999-01-01", True),
        ("until=1999-01-01", False),
    ):
        shown = await viewer.get(f"/dashboard/logs?{query}")
        assert (f"/dashboard/logs/{log_id}" in shown.text) is fits, query
    assert (await viewer.get("/dashboard/logs?since=yesterday")).status_code == 422


async def test_a_filtered_page_that_ends_early_leads_on(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    team = await here.team("Harbor")
    log_id = await refused(team)
    for number in range(5):
        await team.post("/topics", {"name": f"T{number}", "default_subscription": "opt_in"})
    monkeypatch.setattr(filtering, "SCANNED", 2)
    viewer, path, pages = await browser(team), "/dashboard/logs?status=4xx", 0
    while log_id not in (shown := await viewer.get(path)).text:
        path = shown.text.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
        pages += 1
        assert pages < 5, shown.text
    assert pages == 2


async def test_a_request_of_another_team_is_not_there(here: World) -> None:
    log_id = await refused(await here.team("Harbor"))
    ben = await browser(await here.team("Quay"))
    assert (await ben.get(f"/dashboard/logs/{log_id}")).status_code == 404
    assert log_id not in (await ben.get("/dashboard/logs?status=4xx")).text
    assert (await ben.get(f"/dashboard/logs/{uuid4()}")).status_code == 404
