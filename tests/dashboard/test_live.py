"""The stream that tells a page of changes."""

from __future__ import annotations

import asyncio

import httpx

from kit.people import SESSION, a_person, visit
from kit.world import Team, World


async def a_stream(running: World, team: Team) -> tuple[httpx.AsyncClient, str]:
    """A client with the session of a member, and the address of the stream."""
    browser = visit(running)
    await browser.log_in(await a_person(team, "ada@harbor.example"))
    client = running.client(None)
    client.headers["cookie"] = f"{SESSION}={browser.cookies[SESSION]}"
    return client, "/dashboard/live"


async def next_event(lines: object) -> str:
    """The name of the next event, comments left out."""
    async for line in lines:  # type: ignore[attr-defined]
        if line.startswith("event: "):
            return str(line.removeprefix("event: "))
    return "closed"


async def test_a_page_hears_of_a_new_email_within_two_seconds(running: World) -> None:
    team = await running.team()
    client, path = await a_stream(running, team)
    async with client.stream("GET", path) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.aiter_lines()
        assert await anext(lines) == ": no change"
        await team.send(to="ada@quay.example")
        assert await asyncio.wait_for(next_event(lines), 5) == "change"


async def test_other_teams_and_strangers_hear_nothing(running: World) -> None:
    team, other = await running.team(), await running.team("Quay")
    client, path = await a_stream(running, team)
    refused = await running.client(None).get(path)
    assert (refused.status_code, refused.headers["location"]) == (303, "/login")
    async with client.stream("GET", path) as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == ": no change"
        await other.send(to="ada@quay.example")
        try:
            heard = await asyncio.wait_for(next_event(lines), 2.5)
        except TimeoutError:
            heard = "nothing"
        assert heard == "nothing"
