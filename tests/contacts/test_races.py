"""Several writers of one contact: none loses what another has written (contacts.md 0.7 and 7.5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.audience import a_property, a_segment, a_topic
from kit.webhook_events import published_kinds, subscribe
from kit.world import Team, world
from pillarbox.contacts.event_data import SHAPES

ADDRESS = "ada.king@analytical.example"
WRITERS = 20


@pytest.fixture
@asynccontextmanager
async def team(database_url: str, tmp_path: Path) -> AsyncIterator[Team]:
    async with world(database_url, tmp_path, started=False) as pillarbox:
        yield await pillarbox.team()


async def test_7_5_fifty_at_once_make_one_contact(team: Team) -> None:
    await subscribe(team, list(SHAPES))
    answers = await asyncio.gather(*(team.post("/contacts", {"email": ADDRESS}) for _ in range(50)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert await team.world.pool.fetchval("SELECT count(*) FROM contacts") == 1
    assert await published_kinds(team) == ["contact.created"]


async def test_twenty_writers_of_one_address_lose_nothing(team: Team) -> None:
    """Half by POST, half by PATCH, each with a property, a segment and a topic of its own."""
    await subscribe(team, list(SHAPES))
    keys = [f"key_{number}" for number in range(WRITERS)]
    for key in keys:
        await a_property(team, key)
    segments = [str(await a_segment(team)) for _ in range(WRITERS)]
    topics = [str(await a_topic(team, "opt_in")) for _ in range(WRITERS)]
    path = f"/contacts/{ADDRESS}"
    await team.post("/contacts", {"email": ADDRESS})

    async def write(number: int) -> set[int]:
        given = {"properties": {keys[number]: f"{number}"}}
        choice = [{"id": topics[number], "subscription": "opt_out"}]
        if number % 2:
            belonging = {"segments": [segments[number]], "topics": choice}
            return {(await team.post("/contacts", {"email": ADDRESS, **given, **belonging})).status_code}
        return {
            (await team.call("PATCH", path, given)).status_code,
            (await team.post(f"{path}/segments/{segments[number]}")).status_code,
            (await team.call("PATCH", f"{path}/topics", choice)).status_code,
        }

    codes = await asyncio.gather(*(write(number) for number in range(WRITERS)))
    assert set().union(*codes) == {200, 201}
    found = (await team.get(path)).json()
    assert {key: one["value"] for key, one in found["properties"].items()} == {
        key: f"{number}" for number, key in enumerate(keys)
    }
    listed = (await team.get(f"{path}/segments")).json()["data"]
    assert {item["id"] for item in listed} == set(segments)
    chosen = (await team.get(f"{path}/topics")).json()["data"]
    assert {item["subscription"] for item in chosen} == {"opt_out"}
    kinds = await published_kinds(team)
    assert kinds.count("contact.created") == 1
    assert kinds.count("contact.updated") == WRITERS // 2 + WRITERS // 2 * 2
    assert kinds.count("contact.topics.updated") == WRITERS


async def test_deleting_and_writing_at_once_leaves_no_rows_of_nobody(team: Team) -> None:
    segment, topic = str(await a_segment(team)), str(await a_topic(team))
    body = {
        "email": ADDRESS,
        "segments": [segment],
        "topics": [{"id": topic, "subscription": "opt_out"}],
    }
    for _ in range(5):
        answers = await asyncio.gather(
            *(team.post("/contacts", body) for _ in range(5)),
            *(team.call("DELETE", f"/contacts/{ADDRESS}") for _ in range(5)),
            *(team.post(f"/contacts/{ADDRESS}/segments/{segment}") for _ in range(5)),
            *(team.call("PATCH", f"/contacts/{ADDRESS}/topics", body["topics"]) for _ in range(5)),
        )
        assert {answer.status_code for answer in answers} <= {200, 201, 404}
    pool = team.world.pool
    for table in ("segment_members", "topic_choices"):
        left = f"SELECT count(*) FROM {table} WHERE contact_id NOT IN (SELECT id FROM contacts)"
        assert await pool.fetchval(left) == 0
