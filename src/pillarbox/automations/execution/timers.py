"""Carrying out steps that change nothing but their run: triggers, ends of delays and waits, conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from pillarbox.automations.execution.facts import RunSubject, facts_of
from pillarbox.automations.execution.state import RunLocks
from pillarbox.automations.execution.walks import Walk
from pillarbox.automations.execution.work_queries import ClaimedStep
from pillarbox.automations.graphs.evaluation import holds_in_turns
from pillarbox.automations.graphs.graph import Condition, WaitForEvent
from pillarbox.kernel.postgres.database import TeamDb


class ConditionResult(NamedTuple):
    """The result of a condition, and whether the contact was there when it was evaluated."""

    result: bool
    has_contact: bool


async def carry_out(runs: RunLocks, team_id: UUID, items: Sequence[ClaimedStep]) -> None:
    """Carry out these steps in one transaction. Conditions of heavy graphs are decided before it."""
    db = TeamDb(runs.pool, team_id)
    decisions = [await _decision(runs, db, item) for item in items]
    decided = {(item.run_id, item.position): one for item, one in zip(items, decisions, strict=True)}
    async with runs.opened(team_id, items) as (_, steps):
        for item, walk in steps:
            if not walk.is_over:
                advance(walk, item.position, decided[item.run_id, item.position])


def advance(walk: Walk, position: int, decision: ConditionResult | None = None) -> None:
    """Carry out a step whose time has come; conditions without a decision are left to be decided."""
    match walk.graph.steps[position].config:
        case Condition():
            _decide(walk, position, decision)
        case WaitForEvent():
            walk.finish(position, "timeout", {"outcome": "timeout"})
        case _:
            walk.finish(position)


def _decide(walk: Walk, position: int, decision: ConditionResult | None) -> None:
    if decision is None:
        walk.undecided.append(position)
    elif decision.has_contact or walk.contact_deleted_at is not None:
        walk.decide(position, result=decision.result)
    else:
        walk.cancel()


async def _decision(runs: RunLocks, db: TeamDb, item: ClaimedStep) -> ConditionResult | None:
    graph = await runs.versions.graph(db, item.automation_id, item.version)
    config = graph.steps[item.position].config
    if not isinstance(config, Condition) or not graph.is_heavy:
        return None
    facts = await facts_of(db, [RunSubject(item.run_id, item.contact_id, item.event_name)], [graph])
    known = facts[item.run_id]
    return ConditionResult(await holds_in_turns(config.rule, known.event()), known.contact is not None)
