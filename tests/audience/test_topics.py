"""Topics (topics.md sections 1 to 3): the five routes, their refusals and their events."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kit.client import error
from kit.manual_world import manual_world
from kit.webhook_events import published_events, published_kinds, subscribe
from kit.world import Team
from pillarbox.topics.topic_events import SHAPES

DATABASE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
WANTED = {
    "name": "Release notes",
    "description": "What changed this week",
    "default_subscription": "opt_in",
    "visibility": "public",
}
ITEM = ["id", "name", "description", "default_subscription", "visibility", "created_at"]
MISSING = (404, "not_found", "Topic not found")


@pytest.fixture
@asynccontextmanager
async def team(database_url: str, tmp_path: Path) -> AsyncIterator[Team]:
    """A team that hears of its topics."""
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        await subscribe(team, list(SHAPES))
        yield team


async def made(team: Team, **fields: Any) -> str:
    answer = await team.post("/topics", {**WANTED, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def shown(team: Team, topic_id: str) -> dict[str, Any]:
    answer = await team.get(f"/topics/{topic_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_a_topic_is_created_read_and_listed_in_the_order_of_the_contract(team: Team) -> None:
    created = await team.post("/topics", WANTED)
    assert created.status_code == 201
    topic_id = created.json()["id"]
    assert created.content == json.dumps({"object": "topic", "id": topic_id}, separators=(",", ":")).encode()
    found = await shown(team, topic_id)
    assert list(found) == ["object", *ITEM]
    assert {name: found[name] for name in WANTED} == WANTED
    assert DATABASE.fullmatch(found["created_at"])
    listed = (await team.get("/topics")).json()
    assert list(listed) == ["object", "has_more", "data"]
    assert (listed["object"], listed["has_more"]) == ("list", False)
    assert list(listed["data"][0]) == ITEM
    assert {"object": "topic", **listed["data"][0]} == found


async def test_what_is_left_out_has_its_default_and_an_empty_description_is_none(team: Team) -> None:
    for more in ({}, {"description": None, "visibility": None}, {"description": ""}):
        answer = await team.post("/topics", {"name": " \tNews ", "default_subscription": "opt_out", **more})
        found = await shown(team, answer.json()["id"])
        assert found["name"] == "News"
        assert (found["description"], found["visibility"]) == (None, "private")
        assert found["default_subscription"] == "opt_out"


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"name": None}, "missing_required_field", "Missing `name` field."),
    ({"name": ""}, "missing_required_field", "Missing `name` field."),
    ({"name": " \n\u3000"}, "missing_required_field", "Missing `name` field."),
    ({"name": 5}, "validation_error", "Invalid `name` field. It must be a string."),
    ({"name": "x" * 51}, "validation_error", "Invalid `name` field. Use at most 50 characters."),
    (
        {"default_subscription": None},
        "missing_required_field",
        "Missing `default_subscription` field.",
    ),
    (
        {"default_subscription": "in"},
        "validation_error",
        "Invalid `default_subscription` field. Use `opt_in` or `opt_out`.",
    ),
    (
        {"default_subscription": True},
        "validation_error",
        "Invalid `default_subscription` field. Use `opt_in` or `opt_out`.",
    ),
    (
        {"description": "x" * 201},
        "validation_error",
        "Invalid `description` field. Use at most 200 characters.",
    ),
    ({"description": ["x"]}, "validation_error", "Invalid `description` field. It must be a string."),
    (
        {"visibility": "secret"},
        "validation_error",
        "Invalid `visibility` field. Use `private` or `public`.",
    ),
]


@pytest.mark.parametrize(("fields", "name", "message"), REFUSED)
async def test_a_bad_topic_is_refused_and_leaves_nothing(
    team: Team, fields: dict[str, Any], name: str, message: str
) -> None:
    assert error(await team.post("/topics", {**WANTED, **fields})) == (422, name, message)
    assert (await team.get("/topics")).json()["data"] == []
    assert await published_kinds(team) == []


async def test_the_first_missing_field_is_named_in_the_order_of_the_contract(team: Team) -> None:
    assert error(await team.post("/topics", {}))[2] == "Missing `name` field."
    answer = await team.post("/topics", {"name": "News"})
    assert error(answer) == (
        422,
        "missing_required_field",
        "Missing `default_subscription` field.",
    )


async def test_lengths_are_counted_in_code_points(team: Team) -> None:
    """topics.md section 5, point 3: emoji count once, whatever they take on the wire."""
    topic_id = await made(team, name="\U0001f9ed" * 50, description="\U0001f30a" * 200)
    found = await shown(team, topic_id)
    assert (len(found["name"]), len(found["description"])) == (50, 200)
    assert error(await team.post("/topics", {**WANTED, "name": "\U0001f9ed" * 51}))[0] == 422
    assert error(await team.post("/topics", {**WANTED, "description": "\U0001f30a" * 201}))[0] == 422


async def test_names_may_repeat(team: Team) -> None:
    assert await made(team) != await made(team)


async def test_a_list_without_limit_shows_twenty(team: Team) -> None:
    """topics.md section 5, point 4."""
    ids = [await made(team, name=f"Topic {number}") for number in range(21)][::-1]
    listed = (await team.get("/topics")).json()
    assert listed["has_more"] is True
    assert [item["id"] for item in listed["data"]] == ids[:20]
    rest = (await team.get(f"/topics?after={ids[19]}")).json()
    assert (rest["has_more"], [item["id"] for item in rest["data"]]) == (False, ids[20:])
    newer = (await team.get(f"/topics?limit=2&before={ids[5]}")).json()
    assert (newer["has_more"], [item["id"] for item in newer["data"]]) == (True, ids[3:5])


async def test_a_walk_that_deletes_as_it_goes_sees_every_topic_once(team: Team) -> None:
    ids = {await made(team) for _ in range(7)}
    seen: list[str] = []
    after = ""
    while True:
        listed = (await team.get(f"/topics?limit=2{after}")).json()
        for item in listed["data"]:
            seen.append(item["id"])
            assert (await team.call("DELETE", f"/topics/{item['id']}")).status_code == 200
        if not listed["has_more"]:
            break
        after = f"&after={seen[-1]}"
    assert len(seen) == 7
    assert set(seen) == ids
    assert (await team.get("/topics")).json()["data"] == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": " Tides "}, {"name": "Tides"}),
        ({"description": None}, {"description": None}),
        ({"description": ""}, {"description": None}),
        ({"description": "Twice a day"}, {"description": "Twice a day"}),
        ({"visibility": "private"}, {"visibility": "private"}),
        ({"name": "Tides", "visibility": "private"}, {"name": "Tides", "visibility": "private"}),
    ],
)
async def test_a_topic_is_changed_and_told(
    team: Team, change: dict[str, Any], expected: dict[str, Any]
) -> None:
    """The id in the body, which the Node SDK sends, is not read (topics.md section 5, point 2)."""
    topic_id = await made(team)
    before = await shown(team, topic_id)
    answer = await team.call("PATCH", f"/topics/{topic_id}", {"id": str(uuid4()), **change})
    assert answer.status_code == 200
    assert answer.content == json.dumps({"object": "topic", "id": topic_id}, separators=(",", ":")).encode()
    assert await shown(team, topic_id) == {**before, **expected}
    assert await published_kinds(team) == ["topic.created", "topic.updated"]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"id": "x"},
        {"name": "Release notes"},
        {"name": " Release notes"},
        {"default_subscription": "opt_in"},
        WANTED,
    ],
)
async def test_a_change_without_a_difference_is_told_to_nobody(team: Team, change: dict[str, Any]) -> None:
    topic_id = await made(team)
    assert (await team.call("PATCH", f"/topics/{topic_id}", change)).status_code == 200
    assert await published_kinds(team) == ["topic.created"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"default_subscription": "opt_out"}, "Invalid `default_subscription` field. It cannot be changed."),
        (
            {"default_subscription": "maybe"},
            "Invalid `default_subscription` field. Use `opt_in` or `opt_out`.",
        ),
        ({"default_subscription": None}, "Invalid `default_subscription` field. Use `opt_in` or `opt_out`."),
        ({"name": None}, "Invalid `name` field. It must be a string."),
        ({"name": "  "}, "Invalid `name` field. Use at least 1 character."),
        ({"name": "x" * 51}, "Invalid `name` field. Use at most 50 characters."),
        ({"description": "x" * 201}, "Invalid `description` field. Use at most 200 characters."),
        ({"visibility": None}, "Invalid `visibility` field. Use `private` or `public`."),
        (
            {"name": "Tides", "default_subscription": "opt_out"},
            "Invalid `default_subscription` field. It cannot be changed.",
        ),
    ],
)
async def test_a_bad_change_is_refused_and_changes_nothing(
    team: Team, change: dict[str, Any], message: str
) -> None:
    """topics.md section 5, point 2: another default is 422."""
    topic_id = await made(team)
    before = await shown(team, topic_id)
    answer = await team.call("PATCH", f"/topics/{topic_id}", change)
    assert error(answer) == (422, "validation_error", message)
    assert await shown(team, topic_id) == before
    assert await published_kinds(team) == ["topic.created"]


async def test_a_deleted_topic_is_gone_and_cannot_be_deleted_again(team: Team) -> None:
    topic_id = await made(team)
    deleted = await team.call("DELETE", f"/topics/{topic_id}", {})
    assert deleted.status_code == 200
    assert deleted.json() == {"object": "topic", "id": topic_id, "deleted": True}
    assert list(deleted.json()) == ["object", "id", "deleted"]
    assert (await team.get("/topics")).json()["data"] == []
    assert error(await team.get(f"/topics/{topic_id}")) == MISSING
    assert error(await team.call("PATCH", f"/topics/{topic_id}", {"name": "Back"})) == MISSING
    assert error(await team.call("DELETE", f"/topics/{topic_id}")) == MISSING
    assert await published_kinds(team) == ["topic.created", "topic.deleted"]


async def test_unknown_and_malformed_ids(team: Team) -> None:
    for method in ("GET", "PATCH", "DELETE"):
        assert error(await team.call(method, f"/topics/{uuid4()}", {})) == MISSING
        malformed = error(await team.call(method, "/topics/tides", {}))
        assert malformed == (422, "invalid_parameter", "The `topic_id` must be a valid UUID.")


async def test_events_carry_the_topic_as_the_change_left_it(team: Team) -> None:
    """webhooks.md section 7.4: the keys in their order, `deleted` only true where it is."""
    topic_id = await made(team)
    await team.call("PATCH", f"/topics/{topic_id}", {"name": "Tides", "description": None})
    await team.call("DELETE", f"/topics/{topic_id}")
    events = await published_events(team)
    assert [event["type"] for event in events] == ["topic.created", "topic.updated", "topic.deleted"]
    for event in events:
        assert list(event) == ["type", "created_at", "data"]
        data = event["data"]
        assert list(data) == [
            "id",
            "name",
            "description",
            "default_subscription",
            "deleted",
            "created_at",
            "updated_at",
        ]
        assert (data["id"], data["default_subscription"]) == (topic_id, "opt_in")
        assert ISO.fullmatch(data["created_at"])
        assert ISO.fullmatch(data["updated_at"])
        assert data["updated_at"] == event["created_at"]
    assert [event["data"]["deleted"] for event in events] == [False, False, True]
    assert [event["data"]["name"] for event in events] == ["Release notes", "Tides", "Tides"]
    assert [event["data"]["description"] for event in events] == [WANTED["description"], None, None]
    assert len({event["data"]["created_at"] for event in events}) == 1


async def test_two_changes_and_two_deletions_at_once(team: Team) -> None:
    """Changes of different members both survive; of two deletions one finds nothing."""
    topic_id = await made(team)
    path = f"/topics/{topic_id}"
    for number in range(5):
        await asyncio.gather(
            team.call("PATCH", path, {"name": f"Name {number}"}),
            team.call("PATCH", path, {"description": f"Text {number}"}),
        )
        found = await shown(team, topic_id)
        assert (found["name"], found["description"]) == (f"Name {number}", f"Text {number}")
    answers = await asyncio.gather(*[team.call("DELETE", path) for _ in range(4)])
    assert sorted(answer.status_code for answer in answers) == [200, 404, 404, 404]
    kinds = await published_kinds(team)
    assert kinds.count("topic.updated") == 10
    assert kinds.count("topic.deleted") == 1


async def test_other_teams_see_nothing_of_a_topic(team: Team) -> None:
    other = await team.world.team("Quay")
    topic_id = await made(team)
    for method in ("GET", "PATCH", "DELETE"):
        assert error(await other.call(method, f"/topics/{topic_id}", {"name": "Mine"})) == MISSING
    assert (await other.get("/topics")).json()["data"] == []
    assert (await shown(team, topic_id))["name"] == "Release notes"
    assert UUID(topic_id)
