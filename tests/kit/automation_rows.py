"""Automations for tests: small graphs, and teams with what they name."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from kit.world import Team

Graph = dict[str, Any]


def step(key: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"key": key, "type": kind, "config": config}


def connection(source: str, target: str, kind: str | None = None) -> dict[str, Any]:
    shown = {"from": source, "to": target}
    return shown if kind is None else {**shown, "type": kind}


def chain(*steps: dict[str, Any]) -> Graph:
    """One step after the other, by default connections."""
    keys = [one["key"] for one in steps]
    return {
        "steps": list(steps),
        "connections": [connection(*pair) for pair in pairwise(keys)],
    }


def lone_trigger(event_name: str = "user.signed_up") -> Graph:
    return chain(step("start", "trigger", event_name=event_name))


async def an_automation(team: Team, graph: Graph | None = None, **fields: Any) -> str:
    """Created over the API; its id."""
    body = {"name": "Welcome", **(graph or lone_trigger()), **fields}
    answer = await team.post("/automations", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])
