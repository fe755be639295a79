"""The routes of broadcasts (broadcasts.md sections 1 and 3): fields, order, refusals."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.audience import a_segment, a_topic
from kit.broadcasts import WANTED, crew, made, sent, shown, status_of
from kit.client import error
from kit.manual_world import manual_world
from kit.world import Team

DATABASE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")
ITEM = [
    *("id", "name", "audience_id", "segment_id", "status", "created_at", "scheduled_at", "sent_at"),
    "topic_id",
]
FULL = [
    *("object", "id", "name", "audience_id", "segment_id", "from", "subject", "reply_to", "preview_text"),
    *("status", "created_at", "scheduled_at", "sent_at", "text", "html", "topic_id"),
]
MISSING = (404, "not_found", "Broadcast not found")


@asynccontextmanager
async def a_team(database_url: str, folder: Path, **settings: Any) -> AsyncIterator[Team]:
    async with manual_world(database_url, folder, **settings) as pillarbox:
        yield await pillarbox.team()


@pytest.fixture
def team(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Team]:
    return a_team(database_url, tmp_path)


async def test_a_broadcast_is_created_read_and_listed_in_the_order_of_the_contract(team: Team) -> None:
    segment_id, topic_id = await crew(team), await a_topic(team)
    wanted = {**WANTED, "segment_id": str(segment_id), "topic_id": str(topic_id), "name": "October"}
    answer = await team.post("/broadcasts", {**wanted, "reply_to": "a@harbor.example"})
    assert answer.status_code == 201
    broadcast_id = answer.json()["id"]
    assert (
        answer.content
        == json.dumps({"id": broadcast_id, "object": "broadcast"}, separators=(",", ":")).encode()
    )
    found = await shown(team, broadcast_id)
    assert list(found) == FULL
    assert {name: found[name] for name in wanted} == wanted
    assert (found["audience_id"], found["reply_to"]) == (str(segment_id), ["a@harbor.example"])
    assert (found["preview_text"], found["text"], found["status"]) == (None, None, "draft")
    assert DATABASE.fullmatch(found["created_at"])
    listed = (await team.get("/broadcasts")).json()
    assert (list(listed), listed["has_more"]) == (["object", "has_more", "data"], False)
    assert [list(one) for one in listed["data"]] == [ITEM]
    assert listed["data"][0] == {name: found[name] for name in ITEM}


async def test_the_list_is_whole_without_a_limit_and_is_walked_with_one(team: Team) -> None:
    segment_id = await crew(team, 0)
    ids = [await made(team, segment_id) for _ in range(5)][::-1]
    assert [one["id"] for one in (await team.get("/broadcasts")).json()["data"]] == ids
    page = (await team.get(f"/broadcasts?limit=2&after={ids[0]}")).json()
    assert ([one["id"] for one in page["data"]], page["has_more"]) == (ids[1:3], True)
    page = (await team.get(f"/broadcasts?limit=2&before={ids[3]}")).json()
    assert ([one["id"] for one in page["data"]], page["has_more"]) == (ids[1:3], True)


async def test_the_older_name_of_the_segment(team: Team) -> None:
    """What a test must cover 1."""
    one, other = str(await a_segment(team)), str(await a_segment(team))
    for given in ({"audience_id": one}, {"audience_id": one, "segment_id": one}):
        answer = await team.post("/broadcasts", {**WANTED, **given})
        found = await shown(team, answer.json()["id"])
        assert (found["segment_id"], found["audience_id"]) == (one, one)
    both = await team.post("/broadcasts", {**WANTED, "audience_id": one, "segment_id": other})
    assert error(both)[:2] == (422, "validation_error")


async def test_scheduled_at_goes_with_send_alone(team: Team) -> None:
    """What a test must cover 2."""
    segment_id = str(await crew(team))
    wanted = {**WANTED, "segment_id": segment_id, "scheduled_at": "in 1 hour"}
    assert error(await team.post("/broadcasts", wanted))[:2] == (422, "validation_error")
    assert (await team.get("/broadcasts")).json()["data"] == []
    answer = await team.post("/broadcasts", {**wanted, "send": True})
    found = await shown(team, answer.json()["id"])
    assert found["status"] == "scheduled"
    assert DATABASE.fullmatch(found["scheduled_at"])
    at_once = await made(team, segment_id, send=True)
    assert await status_of(team, at_once) == "queued"
    late = await team.post("/broadcasts", {**wanted, "send": True, "scheduled_at": "in 40 days"})
    assert error(late)[:2] == (422, "validation_error")


MISSING_FIELD = "missing_required_field"
BAD: list[tuple[dict[str, Any], tuple[int, str, str | None]]] = [
    ({"segment_id": None}, (422, MISSING_FIELD, "Missing `segment_id` field.")),
    ({"segment_id": ""}, (422, MISSING_FIELD, "Missing `segment_id` field.")),
    ({"segment_id": None, "from": None}, (422, MISSING_FIELD, "Missing `segment_id` field.")),
    ({"from": None, "subject": None}, (422, MISSING_FIELD, "Missing `from` field.")),
    ({"subject": None, "html": None}, (422, MISSING_FIELD, "Missing `subject` field.")),
    ({"html": None}, (422, MISSING_FIELD, "Missing `html` or `text` field.")),
    ({"html": "", "text": ""}, (422, MISSING_FIELD, "Missing `html` or `text` field.")),
    ({"segment_id": "x"}, (422, "invalid_parameter", "The `segment_id` must be a valid UUID.")),
    ({"segment_id": str(uuid4())}, (404, "not_found", "Segment not found")),
    ({"topic_id": str(uuid4())}, (404, "not_found", "Topic not found")),
    ({"topic_id": "x"}, (422, "invalid_parameter", "The `topic_id` must be a valid UUID.")),
    ({"from": "nobody"}, (422, "validation_error", "Invalid `from` field.")),
    ({"from": 5}, (422, "validation_error", "Invalid `from` field.")),
    ({"from": "a@b.example, c@d.example"}, (422, "validation_error", "Invalid `from` field.")),
    ({"subject": "x" * 999}, (422, "validation_error", None)),
    ({"subject": "a\r\nBcc: x@y.example"}, (422, "validation_error", None)),
    ({"subject": 7}, (422, "validation_error", None)),
    ({"html": 7}, (422, "validation_error", None)),
    (
        {"html": "{{{A}}}" * 1001},
        (422, "validation_error", "Invalid `html` field. Use at most 1000 placeholders."),
    ),
    ({"name": "x" * 256}, (422, "validation_error", None)),
    ({"reply_to": ["a@b.example"] * 51}, (422, "validation_error", None)),
    ({"reply_to": {"a": 1}}, (422, "validation_error", None)),
    ({"reply_to": ["nobody"]}, (422, "validation_error", None)),
    ({"preview_text": "x" * 501}, (422, "validation_error", None)),
    ({"send": "yes"}, (422, "validation_error", None)),
    ({"send": True, "scheduled_at": 5}, (422, "validation_error", None)),
    ({"send": True, "scheduled_at": "whenever"}, (422, "validation_error", None)),
]


AT_ONCE: list[dict[str, Any]] = [
    {"segment_id": None},
    {"audience_id": "x"},
    {"from": None},
    {"from": "nobody"},
    {"subject": ""},
    {"subject": 7},
    {"html": 7},
    {"html": None, "text": ""},
    {"text": "{{{A}}}" * 1001},
    {"name": "x" * 256},
    {"reply_to": ["nobody"]},
    {"preview_text": 5},
    {"topic_id": "x"},
]
"""What is wrong in every broadcast, so that it is told before one is looked up (conventions section 1)."""


async def test_bad_input_is_refused_and_nothing_is_written(team: Team) -> None:
    wanted = {**WANTED, "segment_id": str(await crew(team))}
    draft = await made(team, wanted["segment_id"])
    before = await shown(team, draft)
    for fields, expected in BAD:
        found = error(await team.post("/broadcasts", {**wanted, **fields}))
        assert found[:2] == expected[:2], (fields, found)
        assert expected[2] in (None, found[2]), (fields, found)
        if not {"send", "scheduled_at"} & set(fields):
            answer = await team.call("PATCH", f"/broadcasts/{draft}", fields)
            assert answer.status_code in (404, 422), (fields, answer.text)
    for fields in AT_ONCE:
        elsewhere = error(await team.call("PATCH", f"/broadcasts/{uuid4()}", fields))
        assert elsewhere[0] == 422, (fields, elsewhere)
    for body in ([], "x", None):
        assert error(await team.call("POST", "/broadcasts", body))[0] in (400, 422)
    assert len((await team.get("/broadcasts")).json()["data"]) == 1
    assert await shown(team, draft) == before


async def test_what_a_change_clears_and_what_it_leaves(team: Team) -> None:
    topic_id = str(await a_topic(team))
    more = {"reply_to": ["a@harbor.example"], "preview_text": "High", "topic_id": topic_id, "name": "N"}
    broadcast_id = await made(team, text="Hello", **more)
    before = await shown(team, broadcast_id)
    path = f"/broadcasts/{broadcast_id}"
    assert (await team.call("PATCH", path, {})).json() == {"id": broadcast_id, "object": "broadcast"}
    assert (await team.call("PATCH", path, {"send": True, "scheduled_at": "in 1 hour"})).status_code == 200
    assert await shown(team, broadcast_id) == before
    cleared = dict.fromkeys([*more, "html"])
    assert (await team.call("PATCH", path, cleared)).status_code == 200
    assert await shown(team, broadcast_id) == {**before, **cleared}
    both = await team.call("PATCH", path, {"text": None})
    assert error(both) == (422, MISSING_FIELD, "Missing `html` or `text` field.")
    for field in ("from", "subject", "segment_id", "audience_id"):
        assert error(await team.call("PATCH", path, {field: None}))[0] == 422
    assert (await team.call("PATCH", path, {"html": "<p>x</p>", "text": ""})).status_code == 200
    found = await shown(team, broadcast_id)
    assert (found["html"], found["text"]) == ("<p>x</p>", "")


async def test_unknown_and_malformed_ids(team: Team) -> None:
    calls = [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/send"), ("POST", "/cancel")]
    for method, path in (*calls, ("POST", "/duplicate")):
        body = None if method in ("GET", "DELETE") else {}
        unknown = await team.call(method, f"/broadcasts/{uuid4()}{path}", body)
        assert error(unknown) == MISSING, (method, path)
        malformed = await team.call(method, f"/broadcasts/x{path}", body)
        assert error(malformed)[:2] == (422, "invalid_parameter")


async def test_a_sending_key_sends_and_does_nothing_else(database_url: str, tmp_path: Path) -> None:
    """What a test must cover 15."""
    async with a_team(database_url, tmp_path, require_verified_domain="always") as team:
        await team.domain()
        segment_id, key = await crew(team), await team.key(permission="sending_access")
        sender = team.using(key)
        created = await sender.post("/broadcasts", {**WANTED, "segment_id": str(segment_id)})
        assert error(created)[:2] == (401, "restricted_api_key")
        broadcast_id = await made(team, segment_id)
        await sent(sender, broadcast_id)
        assert await status_of(team, broadcast_id) == "queued"


async def test_the_domain_must_be_verified_where_something_is_to_be_sent(
    database_url: str, tmp_path: Path
) -> None:
    async with a_team(database_url, tmp_path, require_verified_domain="always") as team:
        harbor = await team.domain()
        await team.domain("quay.example")
        segment_id = await crew(team)
        refused = (403, "validation_error")
        other = {"from": "a@pier.example"}
        now = await team.post("/broadcasts", {**WANTED, **other, "segment_id": str(segment_id), "send": True})
        assert error(now)[:2] == refused
        assert (await team.get("/broadcasts")).json()["data"] == []
        draft = await made(team, segment_id, **other)
        assert error(await team.post(f"/broadcasts/{draft}/send"))[:2] == refused
        assert await status_of(team, draft) == "draft"
        scheduled = await made(team, segment_id, send=True, scheduled_at="in 1 hour")
        assert error(await team.call("PATCH", f"/broadcasts/{scheduled}", other))[:2] == refused
        assert (await shown(team, scheduled))["from"] == WANTED["from"]
        bound = team.using(await team.key(permission="sending_access", domain_id=harbor))
        of_quay = await made(team, segment_id, **{"from": "a@quay.example"})
        assert error(await bound.post(f"/broadcasts/{of_quay}/send"))[:2] == refused
        await sent(bound, await made(team, segment_id))


@pytest.mark.parametrize("length", [250, 255])
async def test_the_name_of_a_duplicate_stays_within_its_limit(team: Team, length: int) -> None:
    broadcast_id = await made(team, name="x" * length)
    copy = await team.post(f"/broadcasts/{broadcast_id}/duplicate")
    name = (await shown(team, copy.json()["id"]))["name"]
    assert len(name) <= 255
    assert name.endswith("x (copy)")
    unnamed = await team.post(f"/broadcasts/{await made(team)}/duplicate")
    assert (await shown(team, unnamed.json()["id"]))["name"] is None


async def test_a_deleted_segment_reads_as_none_and_has_to_be_replaced(team: Team) -> None:
    segment_id = await crew(team)
    broadcast_id = await made(team, segment_id)
    await team.call("DELETE", f"/segments/{segment_id}")
    found = await shown(team, broadcast_id)
    assert (found["segment_id"], found["audience_id"]) == (None, None)
    [listed] = (await team.get("/broadcasts")).json()["data"]
    assert listed["segment_id"] is None
    answer = await team.post(f"/broadcasts/{broadcast_id}/send")
    assert error(answer) == (422, MISSING_FIELD, "Missing `segment_id` field.")
    other = {"segment_id": str(await crew(team))}
    assert (await team.call("PATCH", f"/broadcasts/{broadcast_id}", other)).status_code == 200
    await sent(team, broadcast_id)


async def test_usage_counts_broadcasts(team: Team) -> None:
    await made(team)
    assert (await team.get("/usage")).json()["broadcasts"] == {"used": 1, "limit": None}
