"""Segments (segments.md): the six routes, deletion, and what happens at once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from kit.audience import a_contact, joins, some_contacts, told_team
from kit.brought import INVARIANTS
from kit.client import error
from kit.manual_world import manual_world, run_jobs
from kit.webhook_events import published_events, subscribe
from kit.world import Team
from pillarbox.contacts import segment_queries
from pillarbox.contacts.event_data import SHAPES
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.kernel.postgres.database import TeamDb, transaction
from pillarbox.kernel.work.jobs import Job
from pillarbox.segments import jobs
from pillarbox.segments.jobs import BATCH, LIMIT, MemberRemoval

DATABASE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")
WAITING = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
MISSING = (404, "not_found", "Segment not found")


@pytest.fixture
@asynccontextmanager
async def team(database_url: str, tmp_path: Path) -> AsyncIterator[Team]:
    """A team whose background jobs the test runs, and that hears of its contacts."""
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        await subscribe(team, list(SHAPES))
        yield team


async def made(team: Team, name: str = "Beta testers", path: str = "/segments") -> str:
    answer = await team.post(path, {"name": name})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def delete(team: Team, segment_id: str) -> httpx.Response:
    return await team.call("DELETE", f"/segments/{segment_id}", {})


async def members(team: Team) -> int:
    """How many memberships are stored, those of deleted segments included."""
    found = await team.world.pool.fetchval("SELECT count(*) FROM segment_members WHERE team_id = $1", team.id)
    return int(found)


async def segments_of(team: Team, contact: object) -> list[str]:
    found = (await team.get(f"/contacts/{contact}/segments")).json()
    return [item["id"] for item in found["data"]]


async def listed(team: Team, segment_id: str, query: str = "") -> list[str]:
    answer = await team.get(f"/segments/{segment_id}/contacts{query}")
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["data"]]


async def waiting(team: Team, count: int) -> None:
    """Return when so many statements wait for a lock."""
    async with asyncio.timeout(10):
        while await team.world.pool.fetchval(WAITING) < count:
            await asyncio.sleep(0.01)


async def test_a_segment_is_created_read_listed_and_renamed_in_the_order_of_the_contract(team: Team) -> None:
    """segments.md section 4, point 1: two segments may have one name."""
    created = (await team.post("/segments", {"name": "  Beta testers "})).json()
    assert list(created.items())[0::2] == [("object", "segment"), ("name", "Beta testers")]
    assert list(created) == ["object", "id", "name"]
    other = await made(team)
    assert other != created["id"]
    shown = (await team.get(f"/segments/{created['id']}")).json()
    assert list(shown) == ["object", "id", "name", "created_at"]
    assert DATABASE.fullmatch(shown["created_at"])
    found = (await team.get("/segments")).json()
    assert list(found) == ["object", "has_more", "data"]
    assert [item["id"] for item in found["data"]] == [other, created["id"]]
    assert list(found["data"][0]) == ["id", "name", "created_at"]
    renamed = await team.call("PATCH", f"/segments/{other}", {"name": "Early birds", "segment_id": "x"})
    assert renamed.status_code == 200
    assert list(renamed.json().items()) == [("object", "segment"), ("id", other)]
    assert (await team.get(f"/segments/{other}")).json()["name"] == "Early birds"
    assert await published_events(team) == []


async def test_a_hundred_and_fifty_segments_are_listed_without_limit(team: Team) -> None:
    """segments.md section 4, point 2."""
    ids = [await made(team, f"Segment {number}") for number in range(150)][::-1]
    found = (await team.get("/segments")).json()
    assert (found["has_more"], [item["id"] for item in found["data"]]) == (False, ids)
    page = (await team.get(f"/segments?limit=100&after={ids[9]}")).json()
    assert (page["has_more"], [item["id"] for item in page["data"]]) == (True, ids[10:110])


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_bad_name_is_refused(team: Team, method: str) -> None:
    path = "/segments" if method == "POST" else f"/segments/{await made(team)}"
    missing = (422, "missing_required_field", "Missing `name` field.")
    for body in ({}, {"name": None}, {"name": ""}, {"name": " \t"}, {"filter": {}}):
        assert error(await team.call(method, path, body)) == missing
    for name, reason in ((7, "It must be a string."), ("x" * 256, "Use at most 255 characters.")):
        answer = await team.call(method, path, {"name": name})
        assert error(answer) == (422, "validation_error", f"Invalid `name` field. {reason}")
    assert (await team.call(method, path, {"name": " " + "\U0001f9ed" * 255})).is_success


async def test_members_that_older_clients_send_are_not_read(team: Team) -> None:
    """segments.md section 4, point 6."""
    body = {"name": "Beta", "filter": {"and": []}, "audience_id": str(uuid4())}
    answer = await team.post("/segments", body)
    assert (answer.status_code, list(answer.json())) == (201, ["object", "id", "name"])


async def test_deleting_twice_or_what_never_was_is_a_success(team: Team) -> None:
    """segments.md section 4, point 3; another team's segment is as good as none, and stays."""
    other = await team.world.team("Quay")
    segment, theirs = await made(team), await made(other)
    for wanted in (segment, segment, str(uuid4()), theirs, theirs.upper()):
        answer = await delete(team, wanted)
        assert answer.status_code == 200
        expected = [("object", "segment"), ("id", wanted.lower()), ("deleted", True)]
        assert list(answer.json().items()) == expected
    malformed = (422, "invalid_parameter", "The `segment_id` must be a valid UUID.")
    assert error(await delete(team, "beta")) == malformed
    assert (await other.get(f"/segments/{theirs}")).status_code == 200
    waiting = "SELECT count(*) FROM jobs WHERE kind = 'segment.remove'"
    assert await team.world.pool.fetchval(waiting) == 1


async def test_what_is_not_there_is_not_found(team: Team) -> None:
    gone = await made(team)
    await delete(team, gone)
    for segment in (gone, str(uuid4())):
        assert error(await team.get(f"/segments/{segment}")) == MISSING
        assert error(await team.get(f"/segments/{segment}/contacts")) == MISSING
        assert error(await team.call("PATCH", f"/segments/{segment}", {"name": "Back"})) == MISSING
    for path in ("/segments/beta", "/segments/beta/contacts"):
        assert error(await team.get(path))[:2] == (422, "invalid_parameter")


async def test_a_deleted_segment_hides_its_members_at_once_and_the_contacts_stay(team: Team) -> None:
    """segments.md section 4, point 4, before the background job has run and after it."""
    segment, kept = await made(team), await made(team)
    contacts = await some_contacts(team, 3)
    for one in (segment, kept):
        await joins(team, UUID(one), contacts)
    await delete(team, segment)
    for stored in (6, 3):
        assert await members(team) == stored
        for contact in contacts:
            assert await segments_of(team, contact) == [kept]
        assert len((await team.get("/contacts")).json()["data"]) == 3
        assert (await reconcile(team.world.pool, 10, INVARIANTS)).gaps == []
        await run_jobs(team.world)
    assert await team.world.pool.fetchval("SELECT count(*) FROM jobs WHERE team_id = $1", team.id) == 0
    assert await published_events(team) == []
    await team.call("PATCH", f"/contacts/{contacts[0]}", {"first_name": "Ada"})
    [event] = await published_events(team)
    assert event["data"]["segment_ids"] == [kept]


async def test_a_removal_that_was_interrupted_goes_on_with_what_is_left(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment, kept = await made(team), await made(team)
    contacts = await some_contacts(team, BATCH + 5)
    for one in (segment, kept):
        await joins(team, UUID(one), contacts)
    await delete(team, segment)
    job = Job(*await team.world.pool.fetchrow(CLAIMED, team.id))

    async def only_one(some: Any) -> int:
        await some()
        raise asyncio.CancelledError

    monkeypatch.setattr(jobs, "in_batches", only_one)
    with pytest.raises(asyncio.CancelledError):
        await MemberRemoval(team.world.pool).remove(job)
    assert await members(team) == len(contacts) + 5
    monkeypatch.undo()
    await run_jobs(team.world)
    assert await members(team) == len(contacts)
    assert len(await listed(team, kept)) == len(contacts)


CLAIMED = """
    SELECT team_id, id, kind, subject_id, attempt, tries, created_at FROM jobs WHERE team_id = $1
"""


async def test_members_are_listed_by_the_creation_of_their_contacts(team: Team) -> None:
    """segments.md section 2: unsubscribed ones too, as in the list of contacts with `segment_id`."""
    segment = await made(team)
    first = await a_contact(team, "First@Quay.example")
    outside = await a_contact(team, "outside@quay.example")
    last = await a_contact(team, "last@quay.example", unsubscribed=True)
    await joins(team, UUID(segment), [last])
    await joins(team, UUID(segment), [first])
    assert await listed(team, segment) == [str(last), str(first)]
    found = await team.get(f"/segments/{segment}/contacts?limit=1")
    assert found.json()["has_more"] is True
    [item] = found.json()["data"]
    assert list(item) == ["id", "email", "first_name", "last_name", "created_at", "unsubscribed"]
    assert (item["email"], item["unsubscribed"]) == ("last@quay.example", True)
    assert DATABASE.fullmatch(item["created_at"])
    for query in ("", "limit=1", f"after={outside}", f"before={outside}"):
        inside = await team.get(f"/segments/{segment}/contacts?{query}")
        assert inside.content == (await team.get(f"/contacts?segment_id={segment}&{query}")).content


async def test_pages_hold_while_members_leave(team: Team) -> None:
    """The contact of a cursor that left the segment, or was deleted, still marks its place."""
    segment = await made(team)
    contacts = [str(one) for one in await some_contacts(team, 20)][::-1]
    await joins(team, UUID(segment), [UUID(one) for one in contacts])
    seen: list[str] = []
    query = "?limit=4"
    while page := await listed(team, segment, query):
        seen += page
        for number, contact in enumerate(page):
            path = f"/contacts/{contact}" + (f"/segments/{segment}" if number % 2 else "")
            assert (await team.call("DELETE", path)).status_code == 200
        query = f"?limit=4&after={page[-1]}"
    assert seen == contacts
    assert await listed(team, segment) == []


async def test_adding_a_member_while_the_segment_is_deleted(database_url: str, tmp_path: Path) -> None:
    """Either 200, and gone with the segment, or 404; never a membership of nothing."""
    async with told_team(database_url, tmp_path) as team:
        seen = set()
        for number in range(25):
            segment = await made(team)
            contacts = await some_contacts(team, 4)
            adding = [team.post(f"/contacts/{contact}/segments/{segment}") for contact in contacts]
            requests = [*adding[:2], delete(team, segment), *adding[2:]]
            if number % 2:
                requests = [requests[2], *requests[:2], *requests[3:]]
            answers = await asyncio.gather(*requests)
            deleted = answers[0 if number % 2 else 2]
            assert deleted.status_code == 200
            for answer in answers:
                if answer is not deleted:
                    assert answer.status_code == 200 or error(answer) == MISSING
                    seen.add(answer.status_code)
        assert seen <= {200, 404}
        assert (await reconcile(team.world.pool, 10, INVARIANTS)).gaps == []
        left = [
            UUID(str(one)) for one in await team.db.values("SELECT subject_id FROM jobs WHERE team_id = $1")
        ]
        for segment_id in left:
            job = Job(
                team_id=team.id,
                id=uuid4(),
                kind="segment.remove",
                subject_id=segment_id,
                attempt=1,
                tries=0,
                created_at=team.world.clock.now(),
            )
            await MemberRemoval(team.world.pool).remove(job)
        assert await members(team) == 0


async def test_a_deletion_is_not_kept_waiting_by_adds_that_come_after_it(team: Team) -> None:
    """Adds may overlap without end; those that begin after the deletion wait for it, and find no segment."""
    segment, contact = await made(team), await a_contact(team, "ada@quay.example")
    paths = [f"/contacts/{contact}/segments/{segment}", f"/audiences/{segment}/contacts", "/contacts"]
    bodies = [None, {"email": "b@quay.example"}, {"email": "c@quay.example", "segments": [segment]}]
    async with asyncio.TaskGroup() as group, transaction(team.world.pool) as conn:
        assert await segment_queries.hold(TeamDb(conn, team.id), [UUID(segment)])
        deleting = group.create_task(delete(team, segment))
        await waiting(team, 1)
        adding = [
            group.create_task(team.call("POST", path, body)) for path, body in zip(paths, bodies, strict=True)
        ]
        await waiting(team, 4)
    assert deleting.result().status_code == 200
    for added, thing in zip(adding, ("Segment", "Audience", "Segment"), strict=True):
        assert error(added.result()) == (404, "not_found", f"{thing} not found")
    assert await members(team) == 0


async def test_one_member_added_twice_at_once(team: Team) -> None:
    """Both 200, one membership, one event."""
    segment = await made(team)
    for round_number, contact in enumerate(await some_contacts(team, 10), 1):
        path = f"/contacts/{contact}/segments/{segment}"
        answers = await asyncio.gather(*[team.post(path) for _ in range(3)])
        assert [answer.status_code for answer in answers] == [200] * 3
        assert {answer.text for answer in answers} == {f'{{"id":"{segment}"}}'}
        assert await members(team) == round_number
        assert len(await published_events(team)) == round_number


async def test_a_segment_deleted_many_times_at_once_leaves_one_job(team: Team) -> None:
    segment = await made(team)
    answers = await asyncio.gather(*[delete(team, segment) for _ in range(8)])
    assert {answer.status_code for answer in answers} == {200}
    assert await team.world.pool.fetchval("SELECT count(*) FROM jobs WHERE team_id = $1", team.id) == 1


async def test_many_deletions_leave_room_for_other_jobs(team: Team) -> None:
    """As many run at once as the limit says, and another kind of job is begun beside them."""
    for _ in range(15):
        await delete(team, await made(team))
    key = (await team.post("/contact-properties", {"key": "plan", "type": "string"})).json()["id"]
    await team.call("DELETE", f"/contact-properties/{key}")
    assert await run_jobs(team.world) == LIMIT.running + 1
    while await run_jobs(team.world):
        pass
    assert await team.world.pool.fetchval("SELECT count(*) FROM jobs WHERE team_id = $1", team.id) == 0


async def test_a_member_of_a_segment_that_is_gone_is_named(team: Team) -> None:
    segment, contact = uuid4(), await a_contact(team, "ada@quay.example")
    await joins(team, segment, [contact])
    [gap] = (await reconcile(team.world.pool, 10, INVARIANTS)).gaps
    assert gap.name == "member_without_segment"
    assert (gap.ids["segment_id"], gap.ids["contact_id"]) == (segment, contact)
