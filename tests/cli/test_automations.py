"""`pillarbox automations list`, `show` and `runs`."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from cli.conftest import Installation
from kit.audience import some_contacts
from kit.automation_rows import an_automation, connection, step
from kit.world import world

GRAPH = {
    "steps": [
        step("start", "trigger", event_name="user.signed_up"),
        step("pause", "wait_for_event", event_name="user.paid", timeout="3 days"),
        step("mail", "send_email", template={"id": "nudge"}),
        step("late", "delay", duration="1 hour"),
    ],
    "connections": [
        connection("start", "pause"),
        connection("pause", "mail", "timeout"),
        connection("pause", "late", "event_received"),
    ],
}
RUN = """
    INSERT INTO automation_runs (team_id, id, automation_id, version, epoch, event_id, event_name,
                                 trigger_key, contact_id, status, payload, created_at, completed_at)
    SELECT a.team_id, $2, a.id, 1, 0, gen_random_uuid(), 'user.signed_up', 'start', $3, $4, '{}',
           a.created_at, CASE $4 WHEN 'running' THEN NULL ELSE a.created_at END
      FROM automations a
     WHERE a.id = $1
"""
WAITS = """
    INSERT INTO automation_work (team_id, run_id, position, contact_id, due_at, waiting, event_name,
                                 waits_from)
    SELECT team_id, id, 1, contact_id, created_at + interval '3 days', true, 'user.paid', created_at
      FROM automation_runs
     WHERE id = $1
"""
FAILS = """
    INSERT INTO automation_steps (team_id, run_id, position, status, error)
    SELECT team_id, id, 2, 'failed', '{"name": "missing_from", "message": "x"}'
      FROM automation_runs
     WHERE id = $1
"""


@pytest.fixture
def automation(harbor: Installation) -> str:
    return asyncio.run(fill(harbor))


async def fill(harbor: Installation) -> str:
    """A team with an automation, a run of it that waits and one that failed."""
    async with world(harbor.url, harbor.folder, started=False) as here:
        team = await here.team("Automated")
        automation_id = await an_automation(team, GRAPH, name="\x1b[31mWelcome")
        for contact, status in zip(await some_contacts(team, 2), ("running", "failed"), strict=True):
            run_id = uuid4()
            await here.pool.execute(RUN, automation_id, run_id, contact, status)
            await here.pool.execute(WAITS if status == "running" else FAILS, run_id)
        return automation_id


def test_automations_with_their_runs(harbor: Installation, automation: str) -> None:
    [found] = harbor.json("automations", "list", "--team", "Automated")["data"]
    assert (found["id"], found["status"]) == (automation, "disabled")
    assert [found[word] for word in ("running", "completed", "failed", "cancelled")] == [1, 0, 1, 0]
    shown = harbor.run("automations", "list", "--team", "Automated")
    assert shown.stdout.splitlines()[0].split() == [
        *("Id", "Name", "Status", "Running", "Completed", "Failed", "Cancelled", "Created"),
    ]
    assert "\x1b" not in shown.stdout
    empty = harbor.run("automations", "list", "--team", "Harbor").stdout
    assert empty == "The team 'Harbor' has no automations.\n"


def test_an_automation_step_by_step(harbor: Installation, automation: str) -> None:
    shown = harbor.run("automations", "show", automation)
    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["Runs", "1", "running,", "0", "completed,", "1", "failed,", "0", "cancelled"] in lines
    assert ["mail", "send_email", "nudge", "0", "1", "-"] in [line[:6] for line in lines]
    assert "timeout: mail" in shown.stdout
    found = harbor.json("automations", "show", automation)
    assert [one["key"] for one in found["steps"]] == ["start", "pause", "mail", "late"]
    assert found["runs"] == [
        {"key": "pause", "waiting": 1, "failed": 0},
        {"key": "mail", "waiting": 0, "failed": 1},
    ]
    missing = harbor.run("automations", "show", str(uuid4()))
    assert missing.exit_code == 1


def test_runs_of_an_automation(harbor: Installation, automation: str) -> None:
    found = harbor.json("automations", "runs", automation)["data"]
    assert {(one["status"], one["error"], one["due_at"] is None) for one in found} == {
        ("running", None, False),
        ("failed", "missing_from", True),
    }
    [failed] = harbor.json("automations", "runs", automation, "--status", "failed")["data"]
    assert (failed["status"], failed["event"]) == ("failed", "user.signed_up")
    assert failed["contact"].endswith(".example")
    assert len(harbor.json("automations", "runs", automation, "--limit", "1")["data"]) == 1
    shown = harbor.run("automations", "runs", automation, "--status", "failed").stdout
    assert shown.splitlines()[0].split()[:4] == ["Id", "Contact", "Event", "Status"]
    assert harbor.run("automations", "runs", automation, "--status", "completed").stdout == (
        "There are no such runs.\n"
    )
    refused = harbor.run("automations", "runs", automation, "--status", "waiting")
    assert refused.exit_code == 1
