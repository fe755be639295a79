"""Definitions of events (events.md sections 1 and 2)."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any
from uuid import uuid4

from kit.client import error
from kit.manual_world import clock_of
from kit.world import Team, World

DATABASE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")
MISSING = (404, "not_found", "Event not found")
SCHEMA = {"plan": "string", "seats": "number", "trial_end": "date", "is_new": "boolean"}


async def made(team: Team, name: str = "user.signed_up", **fields: Any) -> str:
    answer = await team.post("/events", {"name": name, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_a_definition_is_created_read_and_listed_in_the_order_of_the_contract(pillarbox: World) -> None:
    team = await pillarbox.team()
    created = await team.post("/events", {"name": " user.signed_up ", "schema": SCHEMA, "unknown": 1})
    event_id = created.json()["id"]
    assert created.status_code == 201
    assert created.content == json.dumps({"object": "event", "id": event_id}, separators=(",", ":")).encode()
    found = (await team.get("/events/user.signed_up")).json()
    assert list(found) == ["object", "id", "name", "schema", "created_at", "updated_at"]
    assert (found["object"], found["id"], found["name"]) == ("event", event_id, "user.signed_up")
    assert (found["schema"], list(found["schema"])) == (SCHEMA, list(SCHEMA))
    assert DATABASE.fullmatch(found["created_at"])
    assert found["updated_at"] == found["created_at"]
    assert (await team.get(f"/events/{event_id.upper()}")).json() == found
    [item] = (await team.get("/events")).json()["data"]
    assert {"object": "event", **item} == found
    assert list(item) == list(found)[1:]


async def test_a_name_with_a_slash_and_a_blank_is_named_by_its_path(pillarbox: World) -> None:
    """The contract, events.md section 5, point 1."""
    team = await pillarbox.team()
    event_id = await made(team, "a/b c")
    assert (await team.get("/events/a%2Fb%20c")).json()["id"] == event_id
    assert (await team.get("/events/a%252Fb%20c")).status_code == 404
    changed = await team.call("PATCH", "/events/a%2Fb%20c", {"schema": {"x": "date"}})
    assert changed.json() == {"object": "event", "id": event_id}
    gone = await team.call("DELETE", "/events/a%2Fb%20c")
    assert (gone.status_code, gone.json()) == (200, {"object": "event", "id": event_id, "deleted": True})
    assert list(gone.json()) == ["object", "id", "deleted"]
    assert error(await team.get("/events/a%2Fb%20c")) == MISSING


async def test_send_is_a_name_for_all_methods_but_post(pillarbox: World) -> None:
    team = await pillarbox.team()
    assert error(await team.get("/events/send")) == MISSING
    event_id = await made(team, "send")
    assert (await team.get("/events/send/")).json()["id"] == event_id
    assert (await team.http.head("/events/send")).status_code == 200
    assert (await team.call("PATCH", "/events/send", {"schema": {}})).json()["id"] == event_id
    refused = await team.call("PUT", "/events/send")
    assert refused.status_code == 405
    assert refused.headers["allow"] == "DELETE, GET, HEAD, PATCH, POST"
    assert (await team.call("POST", f"/events/{event_id}")).headers["allow"] == "DELETE, GET, HEAD, PATCH"
    assert (await team.call("DELETE", "/events/send")).json()["deleted"] is True
    assert error(await team.call("DELETE", "/events/send")) == MISSING


NAMES = {
    "absent": ({}, "missing_required_field", "Missing `name` field."),
    "null": ({"name": None}, "missing_required_field", "Missing `name` field."),
    "blank": ({"name": " \t"}, "missing_required_field", "Missing `name` field."),
    "a number": ({"name": 5}, "validation_error", "Invalid `name` field. It must be a string."),
    "101 characters": (
        {"name": "é" * 101},
        "validation_error",
        "Invalid `name` field. Use at most 100 characters.",
    ),
    "a control character": (
        {"name": "a\tb"},
        "validation_error",
        "Invalid `name` field. Control characters are not allowed.",
    ),
    "another control character": (
        {"name": "a\x85b"},
        "validation_error",
        "Invalid `name` field. Control characters are not allowed.",
    ),
    "an id": (
        {"name": "9F8E7D6C-5b4a-4938-8271-605f4e3d2c1b"},
        "validation_error",
        "Invalid `name` field. It must not look like an id.",
    ),
}
RESERVED = ["resend:x", "resend:email.opened", "resend:", " resend:"]


async def test_a_wrong_name_is_refused(pillarbox: World) -> None:
    """The contract, events.md section 5, point 2."""
    team = await pillarbox.team()
    for wrong, (body, name, message) in NAMES.items():
        assert error(await team.post("/events", body)) == (422, name, message), wrong
    assert (await team.get("/events")).json()["data"] == []


async def test_reserved_names_are_refused_and_those_that_are_like_them_are_not(pillarbox: World) -> None:
    team = await pillarbox.team()
    for name in RESERVED:
        status, kind, message = error(await team.post("/events", {"name": name}))
        assert (status, kind) == (422, "validation_error"), name
        assert "reserved" in message
    for name in (
        "Resend:x",
        "resend",
        "pillarbox:x",
        "service:",
        "x resend:",
        "é" * 100,
        "a\u2028b",
        ".",
    ):
        event_id = await made(team, name)
        assert (await team.get(f"/events/{event_id}")).json()["name"] == name


async def test_a_name_is_taken_once_in_a_team(pillarbox: World) -> None:
    team, other = await pillarbox.team(), await pillarbox.team("Quay")
    answers = await asyncio.gather(*[team.post("/events", {"name": "once"}) for _ in range(4)])
    assert sorted(answer.status_code for answer in answers) == [201, 422, 422, 422]
    refused = next(answer for answer in answers if answer.status_code == 422)
    assert error(refused)[1:] == (
        "validation_error",
        "Invalid `name` field. There is an event of this name already.",
    )
    await made(team, "Once")
    await made(other, "once")
    await team.call("DELETE", "/events/once")
    await made(team, "once")


SCHEMAS: dict[str, Any] = {
    "an array as type": {"list": "array"},
    "a nested object": {"plan": {"name": "string"}},
    "a number as type": {"plan": 1},
    "null as type": {"plan": None},
    "a list as type": {"plan": ["string"]},
    "a text": "string",
    "an array": ["plan"],
    "a key with a dot": {"plan.name": "string"},
    "an empty key": {"": "string"},
    "a long key": {"k" * 101: "string"},
    "101 keys": {f"k{number}": "string" for number in range(101)},
}


async def test_a_wrong_schema_is_refused_and_nothing_is_changed(pillarbox: World) -> None:
    """The contract, events.md section 5, point 3."""
    team = await pillarbox.team()
    await made(team, "old", schema={"plan": "string"})
    for wrong, schema in SCHEMAS.items():
        status, kind, message = error(await team.post("/events", {"name": "new", "schema": schema}))
        assert (status, kind) == (422, "validation_error"), wrong
        assert "schema" in message, wrong
        assert (await team.call("PATCH", "/events/old", {"schema": schema})).status_code == 422, wrong
    [item] = (await team.get("/events")).json()["data"]
    assert (item["name"], item["schema"]) == ("old", {"plan": "string"})


async def test_null_an_empty_schema_and_the_largest_one_are_fine(pillarbox: World) -> None:
    team = await pillarbox.team()
    largest = {f"{'k' * 97}{number:03}": "date" for number in range(100)}
    for number, schema in enumerate([None, {}, largest]):
        await made(team, f"e{number}", schema=schema)
        assert (await team.get(f"/events/e{number}")).json()["schema"] == schema
    await made(team, "without")
    assert (await team.get("/events/without")).json()["schema"] is None


async def test_a_change_replaces_the_schema_and_nothing_else(pillarbox: World) -> None:
    """The contract, events.md section 5, point 4."""
    team = await pillarbox.team()
    event_id = await made(team, schema=SCHEMA)
    before = (await team.get(f"/events/{event_id}")).json()
    missing = (422, "missing_required_field", "Missing `schema` field.")
    assert error(await team.call("PATCH", f"/events/{event_id}", {})) == missing
    assert error(await team.call("PATCH", f"/events/{event_id}", {"name": "new"})) == missing
    assert error(await team.call("PATCH", f"/events/{event_id}", []))[0] == 422
    clock_of(pillarbox).advance(60)
    changed = await team.call("PATCH", f"/events/{event_id}", {"schema": {"a": "date"}, "name": "new"})
    assert (changed.status_code, changed.json()) == (200, {"object": "event", "id": event_id})
    after = (await team.get(f"/events/{event_id}")).json()
    assert after == {**before, "schema": {"a": "date"}, "updated_at": after["updated_at"]}
    assert after["updated_at"] > before["updated_at"]
    await team.call("PATCH", f"/events/{event_id}", {"schema": None})
    assert (await team.get(f"/events/{event_id}")).json()["schema"] is None
    assert error(await team.call("PATCH", f"/events/{uuid4()}", {"schema": None})) == MISSING


async def test_lists_have_pages_of_twenty(pillarbox: World) -> None:
    team = await pillarbox.team()
    ids = [await made(team, f"e{number}") for number in range(23)][::-1]
    first = (await team.get("/events")).json()
    assert (first["has_more"], [item["id"] for item in first["data"]]) == (True, ids[:20])
    rest = (await team.get(f"/events?after={ids[19]}")).json()
    assert (rest["has_more"], [item["id"] for item in rest["data"]]) == (False, ids[20:])
    back = (await team.get(f"/events?before={ids[20]}&limit=2")).json()
    assert [item["id"] for item in back["data"]] == ids[18:20]
    assert (await team.get("/events?limit=101")).status_code == 422


async def test_a_key_for_sending_only_may_not(pillarbox: World) -> None:
    team = await pillarbox.team()
    sender = team.using(await team.key(permission="sending_access"))
    sent = await sender.post("/events/send", {"event": "x", "email": "ada@quay.example"})
    assert (sent.status_code, sent.json()["name"]) == (401, "restricted_api_key")
    assert (await sender.get("/events")).status_code == 401
