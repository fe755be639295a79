"""The official Python SDK's automations and their runs: every method, in both of its styles."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
import resend
from resend import exceptions

from kit.served import Server, sdk_at, serving

SECONDS = 60
STEPS: list[Any] = [
    {"key": "start", "type": "trigger", "config": {"event_name": "user.signed_up"}},
    {
        "key": "pause",
        "type": "wait_for_event",
        "config": {
            "event_name": "user.paid",
            "timeout": "3 days",
            "filter_rule": {"type": "rule", "field": "event.amount", "operator": "gt", "value": 10},
        },
    },
    {"key": "name", "type": "contact_update", "config": {"first_name": {"var": "event.name"}}},
]
MAIL_STEPS: list[Any] = [
    {"key": "start", "type": "trigger", "config": {"event_name": "user.asked"}},
    {"key": "mail", "type": "send_email", "config": {"template": {"id": "answer"}}},
    {"key": "arrived", "type": "wait_for_event", "config": {"event_name": "resend:email.delivered"}},
    {
        "key": "subject",
        "type": "condition",
        "config": {
            "type": "rule",
            "field": "wait_events.resend:email.delivered.subject",
            "operator": "eq",
            "value": "An answer",
        },
    },
    {"key": "name", "type": "contact_update", "config": {"first_name": "Ada"}},
]
MAIL_CONNECTIONS: list[Any] = [
    {"from": "start", "to": "mail"},
    {"from": "mail", "to": "arrived"},
    {"from": "arrived", "to": "subject", "type": "event_received"},
    {"from": "subject", "to": "name", "type": "condition_met"},
]
CONNECTIONS: list[Any] = [
    {"from": "start", "to": "pause"},
    {"from": "pause", "to": "name", "type": "event_received"},
]
_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(
        tmp_path_factory.mktemp("sdk-automations"), roles="api,jobs,delivery", processes="1"
    ) as running:
        yield running
        assert running.stopped() == 0


@pytest.fixture
def sdk(server: Server) -> Iterator[Server]:
    with sdk_at(server.url):
        yield server


def wanted(name: str = "Welcome") -> Any:
    return {"name": name, "steps": STEPS, "connections": CONNECTIONS}


def address() -> str:
    return f"ada+{next(_numbers)}@quay.example"


def runs_of(automation_id: str, status: str, steps: set[tuple[str, str]]) -> list[str]:
    """The ids of the runs with that status, once the newest has steps that are so."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        found = resend.Automations.Runs.list(automation_id, {"status": status})["data"]
        if found:
            run = resend.Automations.Runs.get(automation_id, found[0]["id"])
            if steps <= {(step["key"], step["status"]) for step in run["steps"]}:
                return [one["id"] for one in found]
        time.sleep(0.1)
    raise AssertionError(f"no run is {status} with {steps}")


def test_every_method(sdk: Server) -> None:
    made = resend.Automations.create(wanted())
    assert made["object"] == "automation"
    automation_id = made["id"]
    found = resend.Automations.get(automation_id)
    assert (found["object"], found["name"], found["status"]) == ("automation", "Welcome", "disabled")
    assert [step["key"] for step in found["steps"]] == ["start", "pause", "name"]
    assert found["connections"][0]["type"] == "default"
    change: Any = {"automation_id": automation_id, "name": "Hello", "status": "enabled"}
    assert resend.Automations.update(change)["id"] == automation_id
    copy = resend.Automations.duplicate(automation_id)
    assert resend.Automations.get(copy["id"])["name"] == "Hello (copy)"
    page = resend.Automations.list({"limit": 1})
    assert (page["object"], page["has_more"], page["data"][0]["id"]) == ("list", True, copy["id"])
    enabled = resend.Automations.list({"status": "enabled"})
    assert [one["id"] for one in enabled["data"]] == [automation_id]
    stopped = resend.Automations.stop(automation_id)
    assert (stopped["object"], stopped["id"], stopped["status"]) == ("automation", automation_id, "disabled")
    for one in (automation_id, copy["id"]):
        removed = resend.Automations.remove(one)
        assert (removed["object"], removed["id"], removed["deleted"]) == ("automation", one, True)
    with pytest.raises(exceptions.ResendError, match="Automation not found"):
        resend.Automations.get(automation_id)
    with pytest.raises(exceptions.ResendError, match="Missing `steps` field"):
        resend.Automations.create({"name": "x"})  # type: ignore[typeddict-item]


def test_runs(sdk: Server) -> None:
    automation_id = resend.Automations.create({**wanted("Runs"), "status": "enabled"})["id"]
    email = address()
    resend.Events.send({"event": "user.signed_up", "email": email, "payload": {"name": "Ada"}})
    waiting = {("start", "completed"), ("pause", "waiting"), ("name", "pending")}
    [run_id] = runs_of(automation_id, "running", waiting)
    resend.Events.send({"event": "user.paid", "email": email, "payload": {"amount": 3}})
    resend.Events.send({"event": "user.paid", "email": email, "payload": {"amount": 30}})
    assert runs_of(automation_id, "completed,failed", {("name", "completed")}) == [run_id]
    run = resend.Automations.Runs.get(automation_id, run_id)
    assert (run["object"], run["id"], run["status"]) == ("automation_run", run_id, "completed")
    assert run["steps"][1]["output"] == {"outcome": "event_received"}
    assert resend.Contacts.get(email=email)["first_name"] == "Ada"
    assert resend.Automations.Runs.list(automation_id)["data"][0]["id"] == run_id
    with pytest.raises(exceptions.ResendError, match="Automation run not found"):
        resend.Automations.Runs.get(automation_id, automation_id)
    resend.Automations.remove(automation_id)


def test_every_method_without_waiting(sdk: Server) -> None:
    async def run() -> None:
        made = await resend.Automations.create_async({**wanted("Async"), "status": "enabled"})
        automation_id = made["id"]
        assert (await resend.Automations.get_async(automation_id))["status"] == "enabled"
        change: Any = {"automation_id": automation_id, "name": "Later"}
        assert (await resend.Automations.update_async(change))["id"] == automation_id
        copy = await resend.Automations.duplicate_async(automation_id)
        listed = await resend.Automations.list_async({"limit": 1})
        assert listed["data"][0]["id"] == copy["id"]
        await resend.Events.send_async({"event": "user.signed_up", "email": address()})
        [run_id] = await asyncio.to_thread(runs_of, automation_id, "running", {("pause", "waiting")})
        assert (await resend.Automations.stop_async(automation_id))["status"] == "disabled"
        runs = await resend.Automations.Runs.list_async(automation_id, {"status": "cancelled"})
        assert [one["id"] for one in runs["data"]] == [run_id]
        shown = await resend.Automations.Runs.get_async(automation_id, run_id)
        assert [step["status"] for step in shown["steps"]] == ["completed", "skipped", "skipped"]
        for one in (automation_id, copy["id"]):
            assert (await resend.Automations.remove_async(one))["deleted"] is True

    asyncio.run(run())


def test_a_wait_for_what_happens_to_mail(sdk: Server) -> None:
    """automations.md 3.5: the wait ends with the delivery of the mail of its run."""
    resend.Domains.create({"name": "harbor.example"})
    sender = "Harbor <hi@harbor.example>"
    made: Any = {
        "name": "Answer",
        "alias": "answer",
        "from": sender,
        "subject": "An answer",
        "html": "<p>Yes.</p>",
    }
    resend.Templates.publish(resend.Templates.create(made)["id"])
    graph: Any = {"steps": MAIL_STEPS, "connections": MAIL_CONNECTIONS, "name": "Mail", "status": "enabled"}
    automation_id = resend.Automations.create(graph)["id"]
    email = address()
    resend.Events.send({"event": "user.asked", "email": email})
    assert len(runs_of(automation_id, "completed,failed", {("name", "completed")})) == 1
    assert resend.Contacts.get(email=email)["first_name"] == "Ada"
