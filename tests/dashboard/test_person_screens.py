"""The screen of personal data: the file of an address, its erasure, and how that is taken back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode
from uuid import uuid4

import pytest

from kit.manual_world import clock_of, manual_world, run_jobs
from kit.people import Visit, a_person, logged_in, text_of
from kit.world import Team, World
from pillarbox.people.roles import TeamRole

HERE = "/dashboard/personal-data"
AWKWARD = "a%41/b?c#d&e@quay.example"


@pytest.fixture
@asynccontextmanager
async def here(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with manual_world(database_url, tmp_path) as found:
        yield found


def asking(address: str, path: str = "") -> str:
    return f"{HERE}{path}?{urlencode({'address': address})}"


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    return await logged_in(team.world, await a_person(team, f"{uuid4().hex[:8]}@quay.example", role))


async def test_an_address_with_special_characters_is_saved_erased_and_allowed(here: World) -> None:
    team, quay = await here.team("Harbor"), await here.team("Quay")
    for address in (AWKWARD, "aA/b@quay.example"):
        assert (await team.post("/contacts", {"email": address})).status_code == 201
    ada = await browser(team)
    shown = await ada.get(asking(AWKWARD))
    assert AWKWARD in text_of(shown)
    assert (await ada.get(asking(AWKWARD, "/file"))).json()["contacts"][0]["email"] == AWKWARD.lower()
    refused = await ada.post(f"{HERE}/erase", address=AWKWARD, typed_name="someone@quay.example")
    assert refused.status_code == 422
    assert AWKWARD in text_of(refused)
    await ada.follow(await ada.post(f"{HERE}/erase", address=AWKWARD, typed_name=AWKWARD))
    clock_of(here).advance(60)
    while await run_jobs(here):
        pass
    [row] = (await team.get("/contacts")).json()["data"]
    assert row["email"] == "aa/b@quay.example"
    [erasure] = (await team.get("/personal-data/erasures")).json()["data"]
    assert erasure["status"] == "completed"
    assert AWKWARD in text_of(await ada.get(asking(AWKWARD)))
    other = await browser(quay)
    await other.get(HERE)
    assert (await other.post(f"{HERE}/{erasure['id']}/remove")).status_code == 404
    viewer = await browser(team, TeamRole.VIEWER)
    assert (await viewer.get(HERE)).status_code == 403
    await ada.follow(await ada.post(f"{HERE}/{erasure['id']}/remove"))
    assert (await team.get("/personal-data/erasures")).json()["data"] == []
    assert (await ada.get(asking("nobody"))).status_code == 422


async def test_an_erasure_asks_for_a_recent_login_and_shows_the_address_again(here: World) -> None:
    team = await here.team("Harbor")
    contact = (await team.post("/contacts", {"email": "ben@quay.example"})).json()["id"]
    ada = await browser(team)
    await ada.get(HERE)
    by_address = {"address": "ben@quay.example"}
    for path, fields in ((HERE, by_address), (f"/dashboard/contacts/{contact}", {})):
        await here.pool.execute("UPDATE person_sessions SET confirmed_at = confirmed_at - interval '1 day'")
        asked = await ada.post(f"{path}/erase", **fields, typed_name="ben@quay.example")
        assert asked.headers["location"].startswith("/confirm?to="), path
        shown = await ada.get(HERE)
        assert 'name="address" value="ben@quay.example"' in shown.text, path
    assert (await team.get("/personal-data/erasures")).json()["data"] == []
