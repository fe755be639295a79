"""Automations for tests: small graphs, and teams with what they name."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from kit.world import Team
from pillarbox.kernel.ids import Ids

Graph = dict[str, Any]

RUNS: Final = """
    WITH runs AS (
        INSERT INTO automation_runs (team_id, id, automation_id, version, epoch, event_id, event_name,
                                     trigger_key, contact_id, status, payload, created_at, started_at)
        SELECT a.team_id, ids.id, a.id, a.version, a.epoch, gen_random_uuid(), 'e', 'start',
               gen_random_uuid(), 'running', '{}', a.created_at, a.created_at
          FROM automations a, unnest($2::uuid[]) AS ids (id)
         WHERE a.id = $1
        RETURNING team_id, id, contact_id, created_at
    ), steps AS (
        INSERT INTO automation_steps (team_id, run_id, position, status, started_at)
        SELECT team_id, id, 0, 'waiting', created_at FROM runs
    ), work AS (
        INSERT INTO automation_work (team_id, run_id, position, contact_id, due_at, waiting)
        SELECT team_id, id, 0, contact_id, created_at + interval '1 day', true FROM runs
    )
    SELECT id FROM runs
"""
"""Runs that sleep in their first step, as the one who starts them would write them."""


def step(key: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"key": key, "type": kind, "config": config}


def connection(source: str, target: str, kind: str | None = None) -> dict[str, Any]:
    shown = {"from": source, "to": target}
    return shown if kind is None else {**shown, "type": kind}


def chain(*steps: dict[str, Any]) -> Graph:
    """Return one step after the other, by default connections."""
    keys = [one["key"] for one in steps]
    return {
        "steps": list(steps),
        "connections": [connection(*pair) for pair in pairwise(keys)],
    }


def lone_trigger(event_name: str = "user.signed_up") -> Graph:
    return chain(step("start", "trigger", event_name=event_name))


async def an_automation(team: Team, graph: Graph | None = None, **fields: Any) -> str:
    """Create an automation over the API; return its id."""
    body = {"name": "Welcome", **(graph or lone_trigger()), **fields}
    answer = await team.post("/automations", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def sleeping_runs(team: Team, automation_id: str, count: int) -> list[UUID]:
    """Make so many runs that sleep, now by the world's clock; return their ids."""
    ids = Ids(team.world.clock).several(count)
    return [row["id"] for row in await team.world.pool.fetch(RUNS, automation_id, ids)]
