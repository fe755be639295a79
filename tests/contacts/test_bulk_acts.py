"""Filters of the list of contacts, and acts on many contacts at once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from kit.audience import a_segment, some_contacts
from kit.client import error
from kit.manual_world import manual_world, run_jobs
from kit.webhook_events import published_events, subscribe
from kit.world import Team
from pillarbox.contacts.bulk_acts import jobs
from pillarbox.contacts.bulk_acts.acts import MOST_OPEN
from pillarbox.contacts.bulk_acts.jobs import BATCH, BulkActJobs
from pillarbox.contacts.bulk_acts.queries import JOB
from pillarbox.contacts.event_data import SHAPES
from pillarbox.kernel.work.jobs import Job

Json = dict[str, Any]
ADA = {"type": "rule", "field": "contact.first_name", "operator": "eq", "value": "Ada"}


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("acts")
    databases.drop(url)


@pytest.fixture
@asynccontextmanager
async def team(place: tuple[str, Path]) -> AsyncIterator[Team]:
    async with manual_world(*place) as pillarbox:
        yield await pillarbox.team()


async def done(team: Team, **body: Any) -> Json:
    """Begin an act and run it; return what became of it."""
    answer = await team.post("/contacts/bulk-acts", body)
    assert answer.status_code == 202, answer.text
    while await run_jobs(team.world):
        pass
    return dict((await team.get(f"/contacts/bulk-acts/{answer.json()['id']}")).json())


async def test_an_act_may_join_long_conditions_with_those_of_a_segment(team: Team) -> None:
    """Each of them is within the bounds, both together are not."""
    await some_contacts(team, 2)
    many = [{**ADA, "operator": "neq", "value": f"Ada {number}"} for number in range(18)]
    deep: Json = {"type": "and", "rules": many}
    for _ in range(2):
        deep = {"type": "not", "rule": deep}
    body = {"name": "Nobody called so", "conditions": {"type": "and", "rules": [deep]}}
    segment = (await team.post("/segments", body)).json()["id"]
    shown = await done(
        team, action="unsubscribe", in_segment=segment, conditions={"type": "and", "rules": many}
    )
    assert (shown["status"], shown["total"], shown["done"]) == ("completed", 2, 2)


async def emails(team: Team, query: str) -> list[str]:
    answer = await team.get(f"/contacts?{query}")
    assert answer.status_code == 200, answer.text
    return [one["email"] for one in answer.json()["data"]]


async def test_contacts_are_found_by_parts_of_names_and_conditions_page_by_page(team: Team) -> None:
    other = await team.world.team("Quay")
    await other.post("/contacts", {"email": "ada@elsewhere.example", "first_name": "Ada"})
    for address, first, last in (
        ("ada@quay.example", "Ada", "Lovelace"),
        ("bo@quay.example", "Bo", None),
        ("countess@pier.example", "Ada", "King"),
    ):
        await team.post("/contacts", {"email": address, "first_name": first, "last_name": last})
    by_hand = await a_segment(team)
    conditions = f"conditions={quote(json.dumps(ADA))}"
    assert await emails(team, conditions) == ["countess@pier.example", "ada@quay.example"]
    assert await emails(team, "search=ADA+lovel") == ["ada@quay.example"]
    assert await emails(team, "search=quay") == ["bo@quay.example", "ada@quay.example"]
    assert await emails(team, f"{conditions}&search=ier") == ["countess@pier.example"]
    assert await emails(team, f"{conditions}&segment_id={by_hand}") == []
    assert await emails(team, "search=%25") == []
    first = (await team.get(f"/contacts?{conditions}&limit=1")).json()
    assert first["has_more"] is True
    assert await emails(team, f"{conditions}&limit=1&after={first['next']}") == ["ada@quay.example"]
    counted = (await team.get(f"/contacts/count?{conditions}")).json()
    assert counted == {"object": "contact_count", "count": 2, "subscribed": 2}
    for query, status in (
        (f"{conditions}&before={uuid4()}", 422),
        ("conditions=[", 422),
        ("conditions={}", 422),
        ("conditions=" + "[" * 9000, 422),
        ("search=" + "+".join("abcdef"), 422),
        (f"search=a&segment_id={uuid4()}", 404),
    ):
        assert (await team.get(f"/contacts?{query}")).status_code == status, query


async def test_acts_change_whom_they_name_and_say_how_far_they_are(team: Team) -> None:
    await subscribe(team, list(SHAPES))
    ids = [str(one) for one in await some_contacts(team, BATCH + 20)]
    segment_id = str(await a_segment(team))
    everybody = await done(team, action="add_to_segment", segment_id=segment_id, all=True)
    assert (everybody["status"], everybody["total"], everybody["done"]) == ("completed", len(ids), len(ids))
    assert everybody["changed"] == len(ids)
    some = await done(
        team, action="remove_from_segment", segment_id=segment_id, contacts=[*ids[:3], str(uuid4())]
    )
    assert (some["done"], some["changed"]) == (3, 3)
    assert (await team.get(f"/contacts/count?segment_id={segment_id}")).json()["count"] == len(ids) - 3
    left = await done(team, action="unsubscribe", in_segment=segment_id)
    assert left["changed"] == len(ids) - 3
    again = await done(team, action="unsubscribe", all=True)
    assert (again["done"], again["changed"]) == (len(ids), 3)
    gone = await done(team, action="delete", search="orchard")
    assert gone["changed"] == len(ids)
    assert (await team.get("/contacts")).json()["data"] == []
    kinds = [event["type"] for event in await published_events(team)]
    assert kinds.count("contact.deleted") == len(ids)
    listed = (await team.get("/contacts/bulk-acts")).json()["data"]
    assert [one["action"] for one in listed][:2] == ["delete", "unsubscribe"]


async def test_an_act_goes_on_behind_its_last_batch_until_it_is_stopped(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "TURN", timedelta(0))
    await some_contacts(team, 3 * BATCH)
    answer = await team.post("/contacts/bulk-acts", {"action": "unsubscribe", "all": True})
    path = f"/contacts/bulk-acts/{answer.json()['id']}"
    await run_jobs(team.world)
    assert (await team.get(path)).json()["done"] == BATCH
    overtaken = Job(
        team_id=team.id,
        id=uuid4(),
        kind=JOB,
        subject_id=UUID(answer.json()["id"]),
        attempt=1,
        tries=1,
        created_at=team.world.clock.now(),
    )
    await team.world.app.need(BulkActJobs).run(overtaken)
    assert (await team.get(path)).json()["done"] == BATCH
    await run_jobs(team.world)
    assert (await team.get(path)).json()["done"] == 2 * BATCH
    assert (await team.post(f"{path}/stop")).status_code == 200
    while await run_jobs(team.world):
        pass
    shown = (await team.get(path)).json()
    assert (shown["status"], shown["done"], shown["total"]) == ("stopped", 2 * BATCH, 3 * BATCH)
    assert error(await team.post(f"{path}/stop"))[0] == 409
    unsubscribed = "SELECT count(*) FROM contacts WHERE team_id = $1 AND unsubscribed"
    assert await team.world.pool.fetchval(unsubscribed, team.id) == 2 * BATCH


REFUSED: list[tuple[Json, int]] = [
    ({}, 422),
    ({"action": "praise", "all": True}, 422),
    ({"action": "unsubscribe"}, 422),
    ({"action": "unsubscribe", "contacts": []}, 422),
    ({"action": "unsubscribe", "contacts": ["x"]}, 422),
    ({"action": "unsubscribe", "contacts": [str(UUID(int=n)) for n in range(1001)]}, 422),
    ({"action": "unsubscribe", "all": True, "contacts": [str(UUID(int=1))]}, 422),
    ({"action": "unsubscribe", "conditions": {"type": "x"}}, 422),
    ({"action": "add_to_segment", "all": True}, 422),
    ({"action": "add_to_segment", "all": True, "segment_id": str(UUID(int=1))}, 404),
    ({"action": "unsubscribe", "in_segment": str(UUID(int=1))}, 404),
]


async def test_acts_that_mean_nothing_are_refused_and_so_are_too_many(team: Team) -> None:
    other = await team.world.team("Quay")
    for body, status in REFUSED:
        assert (await team.post("/contacts/bulk-acts", body)).status_code == status, body
    body = {"name": "x", "conditions": ADA}
    segment_id = (await team.post("/segments", body)).json()["id"]
    added = {"action": "add_to_segment", "segment_id": segment_id, "all": True}
    assert error(await team.post("/contacts/bulk-acts", added))[0] == 422
    act_ids = []
    for _ in range(MOST_OPEN):
        act_ids.append(
            (await team.post("/contacts/bulk-acts", {"action": "delete", "all": True})).json()["id"]
        )
    assert error(await team.post("/contacts/bulk-acts", {"action": "delete", "all": True}))[0] == 403
    assert (await other.get(f"/contacts/bulk-acts/{act_ids[0]}")).status_code == 404
    assert (await other.post(f"/contacts/bulk-acts/{act_ids[0]}/stop")).status_code == 404
    gone = {"action": "add_to_segment", "segment_id": str(await a_segment(team)), "all": True}
    await team.post(f"/contacts/bulk-acts/{act_ids[0]}/stop")
    await some_contacts(team, 2)
    act_id = (await team.post("/contacts/bulk-acts", gone)).json()["id"]
    for one in act_ids[1:]:
        await team.post(f"/contacts/bulk-acts/{one}/stop")
    await team.call("DELETE", f"/segments/{gone['segment_id']}", {})
    while await run_jobs(team.world):
        pass
    shown = (await team.get(f"/contacts/bulk-acts/{act_id}")).json()
    assert (shown["status"], shown["reason"]) == ("failed", "segment_deleted")
