"""Sending events: what is accepted, and what is stored of it (events.md section 2)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.client import error
from kit.manual_world import manual_world
from kit.world import Team, World
from pillarbox.events.partitions import JOB, PARTITIONS, partition_of
from pillarbox.events.sending import EventSender, SentEvent
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.process import faults
from pillarbox.kernel.storage.disk_space import DiskFull, DiskSpace, Space
from pillarbox.kernel.wire.email_address import email_address

ADA = "ada.king@analytical.example"


async def stored(team: Team) -> list[dict[str, Any]]:
    rows = await team.world.pool.fetch("SELECT * FROM events WHERE team_id = $1 ORDER BY number", team.id)
    return [dict(row) for row in rows]


async def payloads(team: Team) -> list[Any]:
    return [json.loads(row["payload"]) for row in await stored(team)]


async def sent(team: Team, body: Any) -> None:
    answer = await team.post("/events/send", body)
    assert answer.status_code == 202, answer.text


async def a_contact(team: Team, email: str = ADA) -> str:
    return str((await team.post("/contacts", {"email": email})).json()["id"])


async def test_an_event_is_stored_with_its_partition_and_the_job_of_it(pillarbox: World) -> None:
    team = await pillarbox.team()
    body = {
        "event": " user.signed_up ",
        "email": f" {ADA.upper()} ",
        "payload": {"plan": "pro", "seats": 3},
    }
    answer = await team.post("/events/send", body)
    assert (answer.status_code, answer.content) == (202, b'{"object":"event","event":"user.signed_up"}')
    [row] = await stored(team)
    assert (row["name"], row["address"], row["contact_id"]) == ("user.signed_up", ADA, None)
    assert (row["payload"], row["partition"]) == ('{"plan":"pro","seats":3}', partition_of(ADA))
    jobs = await pillarbox.pool.fetch("SELECT team_id, subject_id FROM jobs WHERE kind = $1", JOB)
    assert [(job["team_id"], job["subject_id"].int) for job in jobs] == [(team.id, row["partition"])]


async def test_sending_never_makes_a_definition_or_a_contact(pillarbox: World) -> None:
    """The contract, events.md section 5, point 5 and 10."""
    team = await pillarbox.team()
    await sent(team, {"event": "never.defined", "email": ADA})
    await sent(team, {"event": "a/b c", "email": ADA, "contact_id": None, "payload": None})
    assert (await team.get("/events")).json()["data"] == []
    assert (await team.get("/contacts")).json()["data"] == []
    assert await payloads(team) == [{}, {}]


async def test_a_contact_is_named_by_its_id(pillarbox: World) -> None:
    team, other = await pillarbox.team(), await pillarbox.team("Quay")
    contact = await a_contact(team)
    await sent(team, {"event": "x", "contact_id": contact.upper()})
    await sent(team, {"event": "x", "email": ADA})
    first, second = await stored(team)
    assert str(first["contact_id"]) == contact
    assert second["contact_id"] is None
    assert (
        (first["address"], first["partition"])
        == (second["address"], second["partition"])
        == (ADA, partition_of(ADA))
    )
    missing = (404, "not_found", "Contact not found")
    assert error(await team.post("/events/send", {"event": "x", "contact_id": str(uuid4())})) == missing
    assert error(await other.post("/events/send", {"event": "x", "contact_id": contact})) == missing
    assert await stored(other) == []


async def test_an_address_with_letters_of_other_scripts_is_kept_as_it_is_shown(pillarbox: World) -> None:
    team = await pillarbox.team()
    await sent(team, {"event": "x", "email": "Ada@BÜCHER.example"})
    contact = await a_contact(team, "ada@bücher.example")
    await sent(team, {"event": "x", "contact_id": contact})
    first, second = await stored(team)
    assert (first["address"], first["email"]) == ("ada@xn--bcher-kva.example", "ada@bücher.example")
    assert (second["address"], second["email"]) == (first["address"], first["email"])
    assert first["partition"] == second["partition"]


REFUSED: dict[str, tuple[Any, str, str]] = {
    "nothing": ({}, "missing_required_field", "Missing `event` field."),
    "no name": ({"email": ADA}, "missing_required_field", "Missing `event` field."),
    "nobody": ({"event": "x"}, "missing_required_field", "Missing `contact_id` or `email` field."),
    "nobody twice": (
        {"event": "x", "email": None, "contact_id": None},
        "missing_required_field",
        "Missing `contact_id` or `email` field.",
    ),
    "a blank address": ({"event": "x", "email": " "}, "missing_required_field", "Missing `email` field."),
    "both": (
        {"event": "x", "email": ADA, "contact_id": "9f8e7d6c-5b4a-4938-8271-605f4e3d2c1b"},
        "validation_error",
        "Use either `contact_id` or `email`, not both.",
    ),
    "a malformed id": (
        {"event": "x", "contact_id": "5"},
        "invalid_parameter",
        "The `contact_id` must be a valid UUID.",
    ),
    "an address with a name": (
        {"event": "x", "email": f"Ada <{ADA}>"},
        "validation_error",
        "Invalid `email` field.",
    ),
    "no address": ({"event": "x", "email": "ada"}, "validation_error", "Invalid `email` field."),
    "an id as name": (
        {"event": "9f8e7d6c-5b4a-4938-8271-605f4e3d2c1b", "email": ADA},
        "validation_error",
        "Invalid `event` field. It must not look like an id.",
    ),
    "a reserved name": ({"event": "resend:x", "email": ADA}, "validation_error", "Invalid `event` field."),
    "a long name": ({"event": "x" * 101, "email": ADA}, "validation_error", "Invalid `event` field."),
    "an array as payload": (
        {"event": "x", "email": ADA, "payload": []},
        "validation_error",
        "Invalid `payload` field. It must be an object.",
    ),
    "a text as payload": (
        {"event": "x", "email": ADA, "payload": "{}"},
        "validation_error",
        "Invalid `payload`",
    ),
    "too many levels": (
        {"event": "x", "email": ADA, "payload": json.loads('{"a":' * 11 + "1" + "}" * 11)},
        "validation_error",
        "Invalid `payload` field. Use at most 10 levels.",
    ),
    "too many arrays": (
        {"event": "x", "email": ADA, "payload": {"a": json.loads("[" * 10 + "]" * 10)}},
        "validation_error",
        "Invalid `payload` field. Use at most 10 levels.",
    ),
    "too long": (
        {"event": "x", "email": ADA, "payload": {"a": "b" * (100 * 1024)}},
        "validation_error",
        "Invalid `payload` field. Use at most 102,400 octets of JSON.",
    ),
    "a text": ("x", "validation_error", "The request body must be an array or an object."),
    "no events": ([], "validation_error", "Invalid batch. Use an array of 1 to 100 events."),
    "101 events": (
        [{"event": "x", "email": ADA}] * 101,
        "validation_error",
        "Invalid batch. Use an array of 1 to 100 events.",
    ),
    "an array in an array": ([[]], "validation_error", "[0] The request body must be an object."),
    "a wrong one among others": (
        [{"event": "x", "email": ADA}, {"event": "x"}],
        "missing_required_field",
        "[1] Missing `contact_id` or `email` field.",
    ),
}


async def test_what_is_wrong_is_refused_and_nothing_is_stored(pillarbox: World) -> None:
    team = await pillarbox.team()
    for wrong, (body, name, message) in REFUSED.items():
        answer = error(await team.post("/events/send", body))
        assert answer[:2] == (422, name), wrong
        assert answer[2].startswith(message), wrong
    assert await stored(team) == []


async def test_the_largest_payload_and_the_deepest_are_stored_as_they_are(pillarbox: World) -> None:
    team = await pillarbox.team()
    deep = json.loads('{"a":' * 9 + "[]" + "}" * 9)
    long = {"a": "b" * (100 * 1024 - len('{"a":""}'))}
    odd = {"n": 123456789012345678901234567890, "f": -1.5e-7, "t": "\U0001f600 \u2028", "": None}
    for payload in (deep, long, odd):
        await sent(team, {"event": "x", "email": ADA, "payload": payload})
    assert await payloads(team) == [deep, long, odd]


async def test_an_array_is_stored_in_its_order_all_or_nothing(pillarbox: World) -> None:
    team = await pillarbox.team()
    await team.post("/events", {"name": "counted", "schema": {"number": "number"}})
    events = [
        {"event": "counted", "email": f"u{number % 7}@quay.example", "payload": {"number": str(number)}}
        for number in range(100)
    ]
    answer = await team.post("/events/send", events)
    assert answer.status_code == 202
    assert answer.json() == {"data": [{"object": "event", "event": "counted"}] * 100}
    assert await payloads(team) == [{"number": number} for number in range(100)]
    events[60] = {**events[60], "payload": {"number": "many"}}
    assert error(await team.post("/events/send", events)) == (
        422,
        "validation_error",
        "[60] Invalid `payload.number` field. It must be a number.",
    )
    events[60] = {"event": "counted", "contact_id": str(uuid4())}
    refused = await team.post("/events/send", events)
    assert error(refused) == (404, "not_found", "[60] Contact not found")
    assert len(await stored(team)) == 100


async def test_a_violation_of_the_schema_stores_nothing(pillarbox: World) -> None:
    """The contract, events.md section 5, point 6."""
    team, other = await pillarbox.team(), await pillarbox.team("Quay")
    await team.post("/events", {"name": "x", "schema": {"seats": "number"}})
    wrong = {"event": "x", "email": ADA, "payload": {"seats": "x"}}
    expected = (422, "validation_error", "Invalid `payload.seats` field. It must be a number.")
    assert error(await team.post("/events/send", wrong)) == expected
    assert await stored(team) == []
    await sent(team, {"event": "x", "email": ADA, "payload": {"seats": "3", "more": ["kept"]}})
    await sent(other, wrong)
    assert await payloads(team) == [{"seats": 3, "more": ["kept"]}]
    assert await payloads(other) == [{"seats": "x"}]
    await team.call("PATCH", "/events/x", {"schema": {"seats": "string"}})
    await sent(team, wrong)
    await team.call("PATCH", "/events/x", {"schema": {"seats": "boolean"}})
    assert (await team.post("/events/send", wrong)).status_code == 422
    await team.call("DELETE", "/events/x")
    await sent(team, wrong)
    assert await payloads(team) == [{"seats": 3, "more": ["kept"]}, {"seats": "x"}, {"seats": "x"}]


async def test_a_repeated_call_is_another_event(pillarbox: World) -> None:
    team = await pillarbox.team()
    for _ in range(2):
        body = {"event": "x", "email": ADA}
        answer = await team.post("/events/send", body, idempotency_key="the same")
        assert answer.status_code == 202
    assert len(await stored(team)) == 2


async def test_those_that_come_together_are_refused_each_for_itself(pillarbox: World) -> None:
    teams = [await pillarbox.team(f"Team {number}") for number in range(3)]
    await teams[1].post("/events", {"name": "x", "schema": {"n": "number"}})
    bodies = [{"event": "x", "email": f"u{n}@quay.example", "payload": {"n": f"n{n}"}} for n in range(30)]
    with faults.armed("events.before_commit=delay:0.05%1"):
        answers = await asyncio.gather(*[team.post("/events/send", b) for b in bodies for team in teams])
    assert [answer.status_code for answer in answers] == [202, 422, 202] * 30
    assert [len(await stored(team)) for team in teams] == [30, 0, 30]
    partitions = {partition_of(str(body["email"])) for body in bodies}
    count = "SELECT count(*) FROM jobs WHERE kind = $1 AND team_id = $2"
    assert [await pillarbox.pool.fetchval(count, JOB, team.id) for team in teams] == [
        len(partitions),
        0,
        len(partitions),
    ]


async def test_a_failure_before_the_commit_is_answered_with_500_and_one_behind_it_with_202(
    pillarbox: World,
) -> None:
    team = await pillarbox.team()
    body = {"event": "x", "email": ADA}
    with faults.armed("events.before_commit=raise"):
        assert (await team.post("/events/send", body)).status_code == 500
    assert await stored(team) == []
    with faults.armed("events.after_commit=raise"):
        await sent(team, body)
    assert len(await stored(team)) == 1


async def test_without_room_on_the_disk_no_event_is_taken(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        disk = DiskSpace(pillarbox.clock, [tmp_path], lambda _: Space(10**12, 0))
        sending = EventSender(pillarbox.pool, pillarbox.app.need(Ids), disk.check, lambda: None)
        with pytest.raises(DiskFull):
            await sending.send(
                team.id,
                [SentEvent(name="x", contact_id=None, address=email_address(ADA), payload={}, text="{}")],
            )
        assert await stored(team) == []


def test_partitions_are_used_alike() -> None:
    counts = [0] * PARTITIONS
    for number in range(16_000):
        counts[partition_of(f"reader.{number}@quay.example")] += 1
    assert min(counts) > 800
    assert max(counts) < 1200
