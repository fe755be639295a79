"""Contact properties over the API (contacts.md 4), and what becomes of the values of a deleted one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.brought import INVARIANTS
from kit.client import error
from kit.webhook_events import published_kinds, subscribe
from kit.world import Team, World, world
from pillarbox.contact_properties.defining import JOB_REMOVE, RESERVED
from pillarbox.contact_properties.removal import ValueRemoval
from pillarbox.contacts import queries as contact_queries
from pillarbox.contacts.event_data import SHAPES
from pillarbox.kernel.work.jobs import Job, JobFinished


@pytest.fixture
@asynccontextmanager
async def team(database_url: str, tmp_path: Path) -> AsyncIterator[Team]:
    async with world(database_url, tmp_path, started=False) as pillarbox:
        yield await pillarbox.team()


async def defined(team: Team, key: str = "plan", kind: str = "string", **fields: Any) -> str:
    answer = await team.post("/contact-properties", {"key": key, "type": kind, **fields})
    assert answer.status_code == 201, answer.text
    assert list(answer.json()) == ["object", "id"]
    assert answer.json()["object"] == "contact_property"
    return str(answer.json()["id"])


async def properties(team: Team, contact: str) -> dict[str, Any]:
    return dict((await team.get(f"/contacts/{contact}")).json()["properties"])


async def test_a_property_is_shown_as_the_contract_says(team: Team) -> None:
    plan, seats = await defined(team, fallback_value="free"), await defined(team, "seats", "number")
    listed = (await team.get("/contact-properties")).json()
    assert [item["id"] for item in listed["data"]] == [seats, plan]
    assert list(listed["data"][0]) == ["id", "key", "type", "fallback_value", "created_at"]
    found = (await team.get(f"/contact-properties/{plan}")).json()
    assert list(found) == ["object", "id", "key", "type", "fallback_value", "created_at"]
    assert (found["key"], found["type"], found["fallback_value"]) == ("plan", "string", "free")
    page = (await team.get("/contact-properties?limit=1")).json()
    assert ([item["id"] for item in page["data"]], page["has_more"]) == ([seats], True)


async def test_a_fallback_is_changed_and_nothing_else(team: Team) -> None:
    seats = await defined(team, "seats", "number", fallback_value=0)
    path = f"/contact-properties/{seats}"
    for value in (12, -0.5, None, 2**53 - 1):
        answer = await team.call("PATCH", path, {"fallback_value": value, "key": "seats", "id": "x"})
        assert answer.json() == {"object": "contact_property", "id": seats}, answer.text
        assert (await team.get(path)).json()["fallback_value"] == value
    cases: list[tuple[dict[str, Any], tuple[int, str, str]]] = [
        ({}, (422, "missing_required_field", "Missing `fallback_value` field.")),
        ({"fallback_value": "1"}, (422, "validation_error", "Invalid `fallback_value` field.")),
        ({"fallback_value": True}, (422, "validation_error", "Invalid `fallback_value` field.")),
        ({"fallback_value": [1]}, (422, "validation_error", "Invalid `fallback_value` field.")),
        ({"fallback_value": 2**53}, (422, "validation_error", "Invalid `fallback_value` field.")),
        ({"fallback_value": -(10**400)}, (422, "validation_error", "Invalid `fallback_value` field.")),
        ({"fallback_value": 1, "key": "Seats"}, (422, "validation_error", "Invalid `key` field.")),
        ({"fallback_value": 1, "type": "string"}, (422, "validation_error", "Invalid `type` field.")),
    ]
    for body, expected in cases:
        found = error(await team.call("PATCH", path, body))
        assert found[:2] == expected[:2], body
        assert found[2].startswith(expected[2]), body
    assert (await team.get(path)).json()["fallback_value"] == 2**53 - 1
    # What is missing in the body comes before what is not there (conventions section 1).
    lacking = await team.call("PATCH", f"/contact-properties/{uuid4()}", {})
    assert error(lacking) == (422, "missing_required_field", "Missing `fallback_value` field.")
    for method, body in (("GET", None), ("PATCH", {"fallback_value": 1}), ("DELETE", None)):
        answer = await team.call(method, f"/contact-properties/{uuid4()}", body)
        assert error(answer) == (404, "not_found", "Contact property not found")
        assert error(await team.call(method, "/contact-properties/x", body))[:2] == (
            422,
            "invalid_parameter",
        )


async def test_a_bad_definition_makes_nothing(team: Team) -> None:
    cases: list[tuple[dict[str, Any], tuple[str, str]]] = [
        ({}, ("missing_required_field", "Missing `key` field.")),
        ({"key": "plan"}, ("missing_required_field", "Missing `type` field.")),
        ({"key": "", "type": "string"}, ("missing_required_field", "Missing `key` field.")),
        ({"key": "a-b", "type": "string"}, ("validation_error", "Invalid `key` field.")),
        ({"key": "é", "type": "string"}, ("validation_error", "Invalid `key` field.")),
        ({"key": "a\n", "type": "string"}, ("validation_error", "Invalid `key` field.")),
        ({"key": "a" * 51, "type": "string"}, ("validation_error", "Invalid `key` field.")),
        ({"key": 1, "type": "string"}, ("validation_error", "Invalid `key` field.")),
        ({"key": "plan", "type": "boolean"}, ("validation_error", "Invalid `type` field.")),
        ({"key": "plan", "type": "String"}, ("validation_error", "Invalid `type` field.")),
        (
            {"key": "plan", "type": "string", "fallback_value": 1},
            ("validation_error", "Invalid `fallback"),
        ),
        (
            {"key": "plan", "type": "string", "fallback_value": "x" * 2001},
            ("validation_error", "Invalid `fallback_value` field. Use at most 2000 characters."),
        ),
        (
            {"key": "n", "type": "number", "fallback_value": "1"},
            ("validation_error", "Invalid `fallback"),
        ),
        *(
            ({"key": key, "type": "string"}, ("validation_error", "Invalid `key`"))
            for key in sorted(RESERVED)
        ),
    ]
    for body, expected in cases:
        found = error(await team.post("/contact-properties", body))
        assert found[:2] == (422, expected[0]), body
        assert found[2].startswith(expected[1]), body
    assert (await team.get("/contact-properties")).json()["data"] == []
    await defined(team, "a" * 50)
    await defined(team, "Email")


async def test_a_key_is_taken_by_exact_case(team: Team) -> None:
    answers = await asyncio.gather(
        *(team.post("/contact-properties", {"key": "plan", "type": "string"}) for _ in range(10))
    )
    assert sorted(answer.status_code for answer in answers) == [201] + [422] * 9
    refused = next(answer for answer in answers if answer.status_code == 422)
    assert error(refused)[2] == "Invalid `key` field. There is a property `plan` already."
    await defined(team, "Plan")


async def test_a_team_has_a_thousand_properties_at_most(team: Team) -> None:
    await team.world.pool.execute(
        """
            INSERT INTO contact_properties (team_id, id, number, key, type, created_at)
            SELECT $1, gen_random_uuid(), n, 'key_' || n, 'string', now() FROM generate_series(1, 999) AS n
            """,
        team.id,
    )
    last = await defined(team)
    answer = await team.post("/contact-properties", {"key": "another", "type": "string"})
    assert error(answer) == (
        403,
        "validation_error",
        "Your team may have at most 1000 contact properties.",
    )
    await team.call("DELETE", f"/contact-properties/{last}")
    await defined(team, "another")


async def removed(team: Team, batch: int = 2) -> None:
    """Run the jobs that remove values."""
    rows = await team.world.pool.fetch("SELECT * FROM jobs WHERE kind = $1", JOB_REMOVE)
    for row in rows:
        job = Job(
            team_id=row["team_id"],
            id=row["id"],
            kind=row["kind"],
            subject_id=row["subject_id"],
            attempt=1,
            tries=1,
            created_at=row["created_at"],
        )
        done = await ValueRemoval(team.world.pool, batch).remove(job)
        assert isinstance(done, JobFinished)
        async with team.world.pool.acquire() as conn:
            if done.effects is not None:
                await done.effects(conn)
            await conn.execute("DELETE FROM jobs WHERE id = $1", job.id)


async def broken(team: Team) -> list[str]:
    ours = [
        one
        for one in INVARIANTS
        if one.name.startswith(("value_", "member_", "choice_", "deleted_property_"))
    ]
    assert len(ours) >= 6
    return [one.name for one in ours if await team.world.pool.fetch(one.sql, 10, *one.args)]


async def test_a_deleted_property_is_hidden_at_once_and_its_values_go(team: Team) -> None:
    """No contact is told of it, and the same key defined anew begins without values."""
    await subscribe(team, list(SHAPES))
    plan, _ = await defined(team, "plan"), await defined(team, "seats", "number")
    contacts = []
    for number in range(7):
        new = {"email": f"p{number}@quay.example", "properties": {"plan": "pro", "seats": number}}
        contacts.append((await team.post("/contacts", new)).json()["id"])
    answer = await team.call("DELETE", f"/contact-properties/{plan}")
    assert list(answer.json().items()) == [
        ("object", "contact_property"),
        ("deleted", True),
        ("id", plan),
    ]
    assert error(await team.get(f"/contact-properties/{plan}"))[2] == "Contact property not found"
    assert [one["key"] for one in (await team.get("/contact-properties")).json()["data"]] == ["seats"]
    for number, contact in enumerate(contacts):
        assert await properties(team, contact) == {"seats": {"value": number, "type": "number"}}
    anew = await defined(team, "plan")
    await team.call("PATCH", f"/contacts/{contacts[0]}", {"properties": {"plan": "new"}})
    assert await broken(team) == []
    await removed(team)
    assert await properties(team, contacts[0]) == {
        "plan": {"value": "new", "type": "string"},
        "seats": {"value": 0, "type": "number"},
    }
    kept = await team.world.pool.fetch("SELECT properties::text AS kept FROM contacts ORDER BY id")
    assert [row["kept"] for row in kept] == [
        '{"2": 0, "3": "new"}', *(f'{{"2": {number}}}' for number in range(1, 7))
    ]  # fmt: skip
    assert await team.world.pool.fetchval("SELECT count(*) FROM contact_properties") == 2
    assert await broken(team) == []
    assert await published_kinds(team) == ["contact.created"] * 7 + ["contact.updated"]
    assert (await team.get(f"/contact-properties/{anew}")).status_code == 200


async def test_a_number_is_not_given_again_while_values_are_under_it(team: Team) -> None:
    plan = await defined(team)
    contact = (await team.post("/contacts", {"email": "a@b.example", "properties": {"plan": "x"}})).json()[
        "id"
    ]
    await team.call("DELETE", f"/contact-properties/{plan}")
    await defined(team, "tier")
    assert await properties(team, contact) == {}
    await removed(team)
    await defined(team, "third")
    assert await properties(team, contact) == {}
    numbers = await team.world.pool.fetch("SELECT number FROM contact_properties ORDER BY number")
    assert [row["number"] for row in numbers] == [2, 3]


async def test_writers_of_values_race_with_the_deletion(team: Team) -> None:
    """Whoever wrote before the deletion is found by the removal; whoever comes after it is refused."""
    plan = await defined(team)
    writes = [
        team.post("/contacts", {"email": f"p{number}@quay.example", "properties": {"plan": "pro"}})
        for number in range(30)
    ]
    answers = await asyncio.gather(
        *writes[:15], team.call("DELETE", f"/contact-properties/{plan}"), *writes[15:]
    )
    assert {answer.status_code for answer in answers} <= {200, 201, 422}
    await removed(team)
    assert await team.world.pool.fetchval("SELECT count(*) FROM contacts WHERE properties <> '{}'") == 0
    assert await broken(team) == []


async def test_rows_without_their_other_half_are_found(team: Team) -> None:
    await team.post("/contacts", {"email": "a@b.example"})
    await defined(team, "seats", "number")
    pool = team.world.pool
    await pool.execute("""UPDATE contacts SET properties = '{"1": "text", "7": 1}'""")
    await pool.execute(
        "INSERT INTO segment_members VALUES ($1, gen_random_uuid(), gen_random_uuid(), now())", team.id
    )
    await pool.execute(
        "INSERT INTO topic_choices VALUES ($1, gen_random_uuid(), gen_random_uuid(), 'opt_in', now())",
        team.id,
    )
    await pool.execute("UPDATE contact_properties SET deleted_at = now()")
    assert set(await broken(team)) >= {
        "value_without_property",
        "value_of_another_type",
        "deleted_property_without_job",
        "member_without_contact",
        "choice_without_contact",
        "choice_without_topic",
    }


async def test_a_removal_that_was_cut_off_goes_on_from_the_beginning(team: Team) -> None:
    """Its process ended between two batches: nothing is lost, and the number is kept until the end."""
    plan = await defined(team)
    for number in range(6):
        new = {"email": f"p{number}@quay.example", "properties": {"plan": "pro"}}
        assert (await team.post("/contacts", new)).status_code == 201
    await team.call("DELETE", f"/contact-properties/{plan}")
    db, pool = team.db, team.world.pool
    assert await contact_queries.remove_values(db, contact_queries.FIRST, ["1"], 2) is not None
    assert await pool.fetchval("SELECT count(*) FROM contacts WHERE properties <> '{}'") == 4
    assert await broken(team) == []
    await defined(team, "tier")
    await removed(team)
    assert await pool.fetchval("SELECT count(*) FROM contacts WHERE properties <> '{}'") == 0
    assert await pool.fetchval("SELECT array_agg(number) FROM contact_properties") == [2]


async def test_the_properties_of_several_deletions_go_in_one_walk(team: Team) -> None:
    ids = [await defined(team, f"key_{number}") for number in range(5)]
    new = {"email": "a@b.example", "properties": {f"key_{number}": "x" for number in range(5)}}
    await team.post("/contacts", new)
    for one in ids[:4]:
        await team.call("DELETE", f"/contact-properties/{one}")
    pool = team.world.pool
    row = await pool.fetchrow("SELECT * FROM jobs WHERE kind = $1 LIMIT 1", JOB_REMOVE)
    job = Job(
        team_id=row["team_id"],
        id=row["id"],
        kind=row["kind"],
        subject_id=row["subject_id"],
        attempt=1,
        tries=1,
        created_at=row["created_at"],
    )
    done = await ValueRemoval(pool).remove(job)
    assert done.effects is not None
    async with pool.acquire() as conn:
        await done.effects(conn)
    assert await pool.fetchval("SELECT properties::text FROM contacts") == '{"5": "x"}'
    await removed(team)
    assert await pool.fetchval("SELECT count(*) FROM contact_properties") == 1


async def test_a_server_removes_the_values_by_itself(running: World) -> None:
    team = await running.team()
    plan = await defined(team)
    await team.post("/contacts", {"email": "a@b.example", "properties": {"plan": "pro"}})
    await team.call("DELETE", f"/contact-properties/{plan}")
    async with asyncio.timeout(20):
        while await running.pool.fetchval("SELECT count(*) FROM contact_properties"):
            await asyncio.sleep(0.05)
    assert await running.pool.fetchval("SELECT properties::text FROM contacts") == "{}"
