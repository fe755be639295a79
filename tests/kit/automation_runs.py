"""Runs of automations for tests that move time and work by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from kit.manual_world import clock_of, run_jobs
from kit.world import Team, World
from pillarbox.automations.execution.engine import StepEngine
from pillarbox.automations.execution.mail_forwarding import MailEventForwarder
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.process.process_table import boot_id
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import EventDetail, EventKind, TimelineEntry

ADA = "ada@quay.example"

REGISTER_DEAD = """
    INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at)
    VALUES ($1, $2, 4194305, 1, 'jobs', $3, $3)
"""


async def walk(pillarbox: World) -> int:
    """Distribute events and carry out steps until nothing is due; returns how many steps were claimed."""
    total, engine = 0, pillarbox.app.need(StepEngine)
    while True:
        # What is at work already holds room that the next look may need.
        await engine.idle()
        jobs, steps = await run_jobs(pillarbox), await engine.look()
        await engine.idle()
        total += steps
        if not jobs and not steps:
            return total


async def sent(team: Team, event: str, email: str = ADA, **payload: Any) -> None:
    """Send an event of a contact."""
    answer = await team.post("/events/send", {"event": event, "email": email, "payload": payload})
    assert answer.status_code == 202, answer.text


async def runs(team: Team, automation_id: str, status: str | None = None) -> list[dict[str, Any]]:
    """Return the runs of an automation, the newest first."""
    answer = await team.get(f"/automations/{automation_id}/runs" + (f"?status={status}" if status else ""))
    assert answer.status_code == 200, answer.text
    return list(answer.json()["data"])


async def run_of(team: Team, automation_id: str) -> dict[str, Any]:
    """Return the only run of an automation, with its steps."""
    [listed] = await runs(team, automation_id)
    answer = await team.get(f"/automations/{automation_id}/runs/{listed['id']}")
    assert answer.status_code == 200, answer.text
    shown = dict(answer.json())
    assert {key: shown[key] for key in listed} == listed
    return shown


def statuses(run: dict[str, Any]) -> dict[str, str]:
    """Return the status of each step of a run, by key."""
    return {step["key"]: step["status"] for step in run["steps"]}


def outputs(run: dict[str, Any]) -> dict[str, Any]:
    return {step["key"]: step["output"] for step in run["steps"]}


def errors(run: dict[str, Any]) -> dict[str, str]:
    """Return the names of the errors of steps that failed."""
    return {step["key"]: step["error"]["name"] for step in run["steps"] if step["error"] is not None}


async def a_template(team: Team, **fields: Any) -> str:
    """Make a published template; return its id."""
    wanted = {
        "name": "Welcome",
        "from": "Harbor <hi@harbor.example>",
        "subject": "Welcome",
        "html": "<p>Welcome</p>",
        **{name.rstrip("_"): value for name, value in fields.items()},
    }
    wanted = {name: value for name, value in wanted.items() if value is not None}
    answer = await team.post("/templates", wanted)
    assert answer.status_code == 201, answer.text
    template_id = str(answer.json()["id"])
    assert (await team.post(f"/templates/{template_id}/publish")).status_code == 200
    return template_id


async def mails(team: Team) -> list[str]:
    """Return the subjects of the emails of a team, the oldest first."""
    rows = await team.world.pool.fetch(
        "SELECT subject FROM emails WHERE team_id = $1 ORDER BY id", UUID(str(team.id))
    )
    return [row["subject"] for row in rows]


async def go(pillarbox: World) -> None:
    """Carry out steps and forward events of mail until nothing is left."""
    forwarder = pillarbox.app.need(MailEventForwarder)
    while await walk(pillarbox) or await forwarder.look():
        pass


async def happens(team: Team, email_id: str, kind: EventKind, detail: EventDetail | None = None) -> None:
    """Let something happen to the first recipient of an email."""
    clock_of(team.world).advance(0.001)
    entry = TimelineEntry(
        team_id=team.id,
        email_id=UUID(email_id),
        position=0,
        kind=kind,
        at=team.world.clock.now(),
        detail=detail,
    )
    async with transaction(team.world.pool) as conn:
        await team.world.app.need(Timeline).record(conn, [entry])


async def a_dead_process(pillarbox: World) -> UUID:
    """Store a process of this host that is in the register and gone; return its id."""
    process = uuid4()
    await pillarbox.pool.execute(REGISTER_DEAD, process, boot_id(), pillarbox.clock.now())
    return process
