"""Automations (automations.md 1 and 4): the first seven routes, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.automation_rows import an_automation, chain, connection, lone_trigger, sleeping_runs, step
from kit.client import error
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.world import Team

DATABASE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")
MISSING = (404, "not_found", "Automation not found")
NOBODY = str(uuid4())
LISTED = ["id", "name", "status", "created_at", "updated_at"]
TRIGGERS = """
    SELECT event_name, trigger_key, version
      FROM automation_triggers
     WHERE automation_id = $1
     ORDER BY trigger_key
"""
VERSIONS = "SELECT count(*) FROM automation_versions WHERE automation_id = $1"

WELCOME = {
    "steps": [
        step("start", "trigger", event_name="user.signed_up"),
        step("hello", "delay", duration=" 1 day 12 hours "),
        step("pause", "wait_for_event", event_name="user.paid", timeout="3 days", extra=True),
        step("gone", "contact_delete", whatever=1),
    ],
    "connections": [
        connection("start", "hello"),
        connection("hello", "pause"),
        connection("pause", "gone", "timeout"),
        connection("pause", "gone", "event_received"),
        connection("pause", "gone", "timeout"),
    ],
}


@asynccontextmanager
async def a_team(database_url: str, tmp_path: Path) -> AsyncIterator[Team]:
    async with manual_world(database_url, tmp_path) as pillarbox:
        yield await pillarbox.team()


async def shown(team: Team, automation_id: str) -> dict[str, Any]:
    answer = await team.get(f"/automations/{automation_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def patch(team: Team, automation_id: str, body: Any) -> Any:
    return await team.call("PATCH", f"/automations/{automation_id}", body)


async def rows(team: Team, sql: str, automation_id: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await team.world.pool.fetch(sql, automation_id)]


@pytest.fixture
def team(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Team]:
    return a_team(database_url, tmp_path)


async def test_an_automation_is_created_and_shown_in_the_order_of_the_contract(team: Team) -> None:
    created = await team.post("/automations", {"name": " Welcome ", **WELCOME})
    assert created.status_code == 201
    assert list(created.json()) == ["object", "id"]
    found = await shown(team, created.json()["id"])
    assert list(found) == ["object", *LISTED, "steps", "connections"]
    assert (found["object"], found["name"], found["status"]) == ("automation", "Welcome", "disabled")
    assert DATABASE.fullmatch(found["created_at"])
    assert found["updated_at"] == found["created_at"]
    assert found["steps"] == [
        step("start", "trigger", event_name="user.signed_up"),
        step("hello", "delay", duration="1 day 12 hours"),
        step("pause", "wait_for_event", event_name="user.paid", timeout="3 days"),
        step("gone", "contact_delete"),
    ]
    assert [list(one) for one in found["steps"]] == [["key", "type", "config"]] * 4
    assert found["connections"] == [
        connection("start", "hello", "default"),
        connection("hello", "pause", "default"),
        connection("pause", "gone", "timeout"),
        connection("pause", "gone", "event_received"),
    ]
    assert [list(one) for one in found["connections"]] == [["from", "to", "type"]] * 4


async def test_automations_are_listed_the_newest_first_and_by_status(team: Team) -> None:
    first = await an_automation(team)
    second = await an_automation(team, status="enabled")
    third = await an_automation(team)
    answer = (await team.get("/automations")).json()
    assert list(answer) == ["object", "has_more", "data"]
    assert [one["id"] for one in answer["data"]] == [third, second, first]
    assert list(answer["data"][0]) == LISTED
    one = (await team.get(f"/automations?limit=1&after={third}")).json()
    assert ([each["id"] for each in one["data"]], one["has_more"]) == ([second], True)
    one = (await team.get(f"/automations?limit=1&before={first}")).json()
    assert ([each["id"] for each in one["data"]], one["has_more"]) == ([second], True)
    for status, ids in (("enabled", [second]), ("disabled", [third, first])):
        found = (await team.get(f"/automations?status={status}")).json()["data"]
        assert [each["id"] for each in found] == ids
    refused = await team.get("/automations?status=running")
    assert error(refused)[:2] == (422, "validation_error")


WRONG_BODIES: dict[str, tuple[Any, str, str]] = {
    "no object": ([], "validation_error", "The request body must be an object."),
    "no name": ({**lone_trigger()}, "missing_required_field", "Missing `name` field."),
    "a blank name": ({"name": " ", **lone_trigger()}, "missing_required_field", "Missing `name` field."),
    "a long name": ({"name": "x" * 256, **lone_trigger()}, "validation_error", "Invalid `name` field."),
    "a name of another type": ({"name": 7, **lone_trigger()}, "validation_error", "Invalid `name` field."),
    "no steps": ({"name": "W", "connections": []}, "missing_required_field", "Missing `steps` field."),
    "no connections": (
        {"name": "W", "steps": lone_trigger()["steps"]},
        "missing_required_field",
        "Missing `connections` field.",
    ),
    "steps as an object": (
        {"name": "W", "steps": {}, "connections": []},
        "validation_error",
        "Invalid `steps` field. It must be an array.",
    ),
    "another status": (
        {"name": "W", **lone_trigger(), "status": "on"},
        "validation_error",
        "Invalid `status` field. Use `enabled` or `disabled`.",
    ),
    "no trigger": (
        {"name": "W", "steps": [step("a", "delay", duration="1m")], "connections": []},
        "validation_error",
        "The automation needs at least one `trigger` step.",
    ),
}


async def test_a_wrong_body_is_refused_and_nothing_is_written(team: Team) -> None:
    for case, (body, name, message) in WRONG_BODIES.items():
        status, found, said = error(await team.post("/automations", body))
        assert (status, found) == (422, name), case
        assert said.startswith(message), case
    assert await team.world.pool.fetchval("SELECT count(*) FROM automations") == 0


async def test_a_change_needs_something_and_both_halves_of_a_graph(team: Team) -> None:
    automation_id = await an_automation(team)
    before = await shown(team, automation_id)
    for body, name in (
        ({}, "missing_required_field"),
        ({"id": automation_id}, "missing_required_field"),
        ({"steps": lone_trigger()["steps"]}, "missing_required_field"),
        ({"connections": []}, "missing_required_field"),
        ({"name": None}, "validation_error"),
        ({"name": " "}, "validation_error"),
        ({"status": None}, "validation_error"),
        ({"steps": None, "connections": []}, "validation_error"),
        ({"name": "New", "steps": [], "connections": []}, "validation_error"),
    ):
        assert error(await patch(team, automation_id, body))[:2] == (422, name), body
    assert await shown(team, automation_id) == before


async def test_a_change_is_shown_and_a_graph_is_another_version(team: Team) -> None:
    automation_id = await an_automation(team)
    clock_of(team.world).advance(60)
    answer = await patch(team, automation_id, {"name": "Hello", **WELCOME})
    assert answer.json() == {"object": "automation", "id": automation_id}
    after = await shown(team, automation_id)
    assert (after["name"], len(after["steps"])) == ("Hello", 4)
    assert after["updated_at"] > after["created_at"]
    assert await rows(team, VERSIONS, automation_id) == [(2,)]
    await patch(team, automation_id, {"name": "Hello", "status": "disabled", **WELCOME})
    assert await rows(team, VERSIONS, automation_id) == [(2,)]
    assert await shown(team, automation_id) == after


async def test_what_starts_runs_is_there_while_it_is_enabled(team: Team) -> None:
    graph = {
        "steps": [
            step("a", "trigger", event_name="one"),
            step("b", "trigger", event_name="two"),
            step("end", "delay", duration="1 hour"),
        ],
        "connections": [connection("a", "end"), connection("b", "end")],
    }
    automation_id = await an_automation(team, graph)
    assert await rows(team, TRIGGERS, automation_id) == []
    await patch(team, automation_id, {"status": "enabled"})
    assert await rows(team, TRIGGERS, automation_id) == [("one", "a", 1), ("two", "b", 1)]
    enabled = await shown(team, automation_id)
    assert enabled["status"] == "enabled"
    await patch(team, automation_id, {"status": "enabled"})
    assert await shown(team, automation_id) == enabled
    await patch(team, automation_id, {"status": "disabled", **lone_trigger("three")})
    assert await rows(team, TRIGGERS, automation_id) == []
    await patch(team, automation_id, {"status": "enabled"})
    assert await rows(team, TRIGGERS, automation_id) == [("three", "start", 2)]


async def test_the_graph_of_an_enabled_automation_stays_until_it_is_disabled(team: Team) -> None:
    automation_id = await an_automation(team, status="enabled")
    for body in (WELCOME, {"status": "enabled", **WELCOME}):
        status, name, said = error(await patch(team, automation_id, body))
        assert (status, name) == (422, "validation_error")
        assert "Disable it first" in said
    assert (await patch(team, automation_id, {"name": "Renamed"})).status_code == 200
    assert (await patch(team, automation_id, {"status": "disabled", **WELCOME})).status_code == 200
    after = await shown(team, automation_id)
    assert (after["name"], after["status"], len(after["steps"])) == ("Renamed", "disabled", 4)
    answer = await patch(team, automation_id, {"status": "enabled", **lone_trigger("later")})
    assert answer.status_code == 200
    assert await rows(team, TRIGGERS, automation_id) == [("later", "start", 3)]


def sending(**config: Any) -> dict[str, Any]:
    return chain(step("start", "trigger", event_name="e"), step("mail", "send_email", **config))


NOT_READY: dict[str, tuple[dict[str, Any], str]] = {
    "template": (sending(template={"id": "nothing"}), "There is no template `nothing`."),
    "template by id": (sending(template={"id": NOBODY}), "There is no template `"),
    "topic": (sending(template={"id": "hello"}, topic_id=NOBODY), "There is no topic `"),
    "draft": (sending(template={"id": "draft"}), "The template `draft` is not published."),
    "segment": (
        chain(step("start", "trigger", event_name="e"), step("mail", "add_to_segment", segment_id=NOBODY)),
        "There is no segment `",
    ),
    "property": (
        chain(
            step("start", "trigger", event_name="e"),
            step("mail", "contact_update", properties={"plan": "pro"}),
        ),
        "There is no property `plan`.",
    ),
}


async def templates(team: Team) -> None:
    """One that is published, `hello`, and a draft, `draft`."""
    for alias in ("hello", "draft"):
        wanted = {"name": alias, "alias": alias, "subject": "Hi", "html": "<p>Hi</p>"}
        assert (await team.post("/templates", wanted)).status_code in (200, 201)
    assert (await team.post("/templates/hello/publish")).status_code == 200


async def test_what_steps_name_must_be_there_when_it_is_enabled(team: Team) -> None:
    await templates(team)
    for graph, message in NOT_READY.values():
        automation_id = await an_automation(team, graph)
        status, name, said = error(await patch(team, automation_id, {"status": "enabled"}))
        assert (status, name) == (422, "validation_error")
        assert said.startswith("The step `mail` cannot be enabled. " + message)
        refused = await team.post("/automations", {"name": "W", **graph, "status": "enabled"})
        assert error(refused) == (status, name, said)
        assert (await shown(team, automation_id))["status"] == "disabled"
    assert len((await team.get("/automations")).json()["data"]) == len(NOT_READY)


async def test_an_automation_without_a_sender_is_enabled_all_the_same(team: Team) -> None:
    await templates(team)
    await an_automation(team, sending(template={"id": "hello"}), status="enabled")


async def test_a_duplicate_is_disabled_and_has_the_same_graph(team: Team) -> None:
    automation_id = await an_automation(team, WELCOME, name="x" * 255, status="enabled")
    answer = await team.post(f"/automations/{automation_id}/duplicate")
    assert answer.status_code == 201
    assert list(answer.json()) == ["object", "id"]
    original, copy = await shown(team, automation_id), await shown(team, answer.json()["id"])
    assert copy["name"] == "x" * 248 + " (copy)"
    assert (copy["status"], original["status"]) == ("disabled", "enabled")
    assert (copy["steps"], copy["connections"]) == (original["steps"], original["connections"])


async def test_stopping_disables(team: Team) -> None:
    automation_id = await an_automation(team, status="enabled")
    for _ in range(2):
        answer = await team.post(f"/automations/{automation_id}/stop")
        assert answer.json() == {"object": "automation", "id": automation_id, "status": "disabled"}
    assert (await shown(team, automation_id))["status"] == "disabled"
    assert await rows(team, TRIGGERS, automation_id) == []


async def test_a_deleted_automation_is_gone(team: Team) -> None:
    automation_id = await an_automation(team, status="enabled")
    answer = await team.call("DELETE", f"/automations/{automation_id}")
    assert answer.json() == {"object": "automation", "id": automation_id, "deleted": True}
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"name": "x"}),
        ("DELETE", "", None),
        ("POST", "/duplicate", None),
        ("POST", "/stop", None),
    ):
        assert error(await team.call(method, f"/automations/{automation_id}{path}", body)) == MISSING
    assert (await team.get("/automations")).json()["data"] == []
    assert await rows(team, TRIGGERS, automation_id) == []


STATUSES = "SELECT status, count(*) FROM automation_runs WHERE automation_id = $1 GROUP BY status ORDER BY 1"
LEFT = """
    SELECT (SELECT count(*) FROM automations) + (SELECT count(*) FROM automation_versions)
         + (SELECT count(*) FROM automation_runs) + (SELECT count(*) FROM automation_steps)
         + (SELECT count(*) FROM automation_work)
"""


async def test_disabling_leaves_runs_and_stopping_cancels_them(team: Team) -> None:
    automation_id, other = await an_automation(team, status="enabled"), await an_automation(team)
    for one in (automation_id, other):
        await sleeping_runs(team, one, 3)
    await patch(team, automation_id, {"status": "disabled"})
    assert await rows(team, STATUSES, automation_id) == [("running", 3)]
    assert (await team.post(f"/automations/{automation_id}/stop")).status_code == 200
    assert await rows(team, STATUSES, automation_id) == [("cancelled", 3)]
    assert await rows(team, STATUSES, other) == [("running", 3)]
    assert await team.world.pool.fetchval("SELECT count(*) FROM automation_work") == 3
    await patch(team, automation_id, {"status": "enabled"})
    await sleeping_runs(team, automation_id, 2)
    assert await rows(team, STATUSES, automation_id) == [("cancelled", 3), ("running", 2)]
    await run_jobs(team.world)
    assert await rows(team, STATUSES, automation_id) == [("cancelled", 3), ("running", 2)]


async def test_of_very_many_runs_a_job_cancels_the_rest(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pillarbox.automations.changes.CANCELLED_AT_ONCE", 2)
    monkeypatch.setattr("pillarbox.automations.jobs.BATCH", 2)
    async with a_team(database_url, tmp_path) as team:
        automation_id = await an_automation(team, status="enabled")
        await sleeping_runs(team, automation_id, 7)
        await team.post(f"/automations/{automation_id}/stop")
        assert await rows(team, STATUSES, automation_id) == [("cancelled", 2), ("running", 5)]
        await patch(team, automation_id, {"status": "enabled"})
        await sleeping_runs(team, automation_id, 1)
        await run_jobs(team.world)
        assert await rows(team, STATUSES, automation_id) == [("cancelled", 7), ("running", 1)]


async def test_nothing_is_left_of_a_deleted_automation(team: Team) -> None:
    automation_id = await an_automation(team, status="enabled")
    await sleeping_runs(team, automation_id, 5)
    await team.call("DELETE", f"/automations/{automation_id}")
    assert await rows(team, STATUSES, automation_id) == [("cancelled", 5)]
    await run_jobs(team.world)
    assert await team.world.pool.fetchval(LEFT) == 0


async def test_an_id_is_a_uuid(team: Team) -> None:
    assert error(await team.get("/automations/welcome"))[:2] == (422, "invalid_parameter")
    assert error(await team.get(f"/automations/{NOBODY}")) == MISSING
