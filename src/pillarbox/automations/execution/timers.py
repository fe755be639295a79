"""Carrying out steps that change nothing but their run: triggers, ends of delays and waits, conditions."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pillarbox.automations.execution.state import Runs
from pillarbox.automations.execution.walks import Walk
from pillarbox.automations.execution.work_queries import Claimed
from pillarbox.automations.graphs.graph import Condition, WaitForEvent


async def carry_out(runs: Runs, team_id: UUID, items: Sequence[Claimed]) -> None:
    """All of these in one transaction."""
    async with runs.opened(team_id, items) as (_, steps):
        for item, walk in steps:
            if not walk.is_over:
                advance(walk, item.position)


def advance(walk: Walk, position: int) -> None:
    """Carry out a step whose time has come; conditions are left to be decided."""
    match walk.graph.steps[position].config:
        case Condition():
            walk.undecided.append(position)
        case WaitForEvent():
            walk.finish(position, "timeout", {"outcome": "timeout"})
        case _:
            walk.finish(position)
