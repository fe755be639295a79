"""Runs as they are answered: what their rows say, and what follows from it for steps without rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, get_args
from uuid import UUID

import msgspec

from pillarbox.automations.graphs.graph import Graph, GraphStep
from pillarbox.automations.graphs.progress import ReachedStep, StepStatus, outcome_of, statuses
from pillarbox.automations.graphs.stored import StoredGraph
from pillarbox.automations.runs import queries, wire
from pillarbox.automations.runs.queries import FoundRun, ListedRun, RunFilter, RunOwner, RunStatus, StepRow
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import database_style
from pillarbox.kernel.wire.paging import ListOf, Page, envelope
from pillarbox.kernel.wire.problems import InvalidParameter, NotFound

STATUSES: Final[tuple[RunStatus, ...]] = get_args(RunStatus)


def wanted(text: str | None) -> tuple[RunStatus, ...]:
    """Return the statuses of a comma list, or all where it is empty; 422 for another word."""
    if text is None:
        return STATUSES
    words = [word.strip() for word in text.split(",")]
    unknown = [word for word in words if word not in STATUSES]
    if unknown:
        raise InvalidParameter("status", f"Use words of {', '.join(STATUSES)}, with commas between.")
    return tuple(status for status in STATUSES if status in words)


async def listed(
    db: TeamDb, automation_id: UUID, page: Page, only: Sequence[RunStatus]
) -> ListOf[wire.RunItem]:
    """Return a page of an automation's runs, the newest first; 404 where the automation does not exist."""
    owner = await found_owner(db, automation_id)
    rows = await queries.page(db, page, automation_id, _parts(owner, only), owner.epoch)
    return envelope(rows, page, lambda row: _item(row, owner))


async def shown(db: TeamDb, automation_id: UUID, run_id: UUID) -> wire.FullRun:
    """Return a run with all steps of its version; 404 where it is not a run of that automation."""
    owner = await found_owner(db, automation_id)
    run = await queries.run(db, automation_id, run_id)
    if run is None:
        raise NotFound("Automation run")
    graph = await StoredGraph(run.steps, run.connections).graph()
    return full(run, graph, owner, await queries.steps(db, run.id))


async def found_owner(db: TeamDb, automation_id: UUID) -> RunOwner:
    owner = await queries.owner(db, automation_id)
    if owner is None:
        raise NotFound("Automation")
    return owner


def full(run: FoundRun, graph: Graph, owner: RunOwner, rows: Sequence[StepRow]) -> wire.FullRun:
    status, completed_at = _status(run, owner), _completed(run, owner)
    return wire.FullRun(
        object="automation_run",
        id=run.id,
        status=status,
        started_at=_shown(run.started_at),
        completed_at=_shown(completed_at),
        created_at=database_style(run.created_at),
        steps=_steps(graph, run, rows, has_ended=status != "running"),
    )


def _steps(graph: Graph, run: FoundRun, rows: Sequence[StepRow], *, has_ended: bool) -> list[wire.RunStep]:
    known = {row.position: row for row in rows}
    reached = {row.position: _reached(graph.steps[row.position], row) for row in rows}
    words = statuses(graph, graph.positions[run.trigger_key], reached, ended=has_ended)
    created_at = database_style(run.created_at)
    return [
        _step(graph.steps[position], words[position], known.get(position), created_at)
        for position in graph.order
    ]


def _reached(step: GraphStep, row: StepRow) -> ReachedStep:
    return ReachedStep(row.status, outcome_of(step, row.status, _decoded(row.output)))


def _step(step: GraphStep, status: StepStatus, row: StepRow | None, created_at: str) -> wire.RunStep:
    if row is None:
        return wire.RunStep(
            key=step.key,
            type=step.type,
            status=status,
            started_at=None,
            completed_at=None,
            output=None,
            error=None,
            created_at=created_at,
        )
    error = None if row.error is None else msgspec.json.decode(row.error, type=wire.StepError)
    return wire.RunStep(
        key=step.key,
        type=step.type,
        status=status,
        started_at=_shown(row.started_at),
        completed_at=_shown(row.completed_at),
        output=_decoded(row.output),
        error=error,
        created_at=created_at,
    )


def _parts(owner: RunOwner, only: Sequence[RunStatus]) -> list[RunFilter]:
    """Return the runs that are shown with these statuses, by what their rows have."""
    if not owner.is_ending or {"running", "cancelled"} <= set(only):
        return [RunFilter(status, None) for status in only]
    parts = [RunFilter(status, False if status == "running" else None) for status in only]
    return [*parts, RunFilter("running", True)] if "cancelled" in only else parts


def _item(row: ListedRun, owner: RunOwner) -> wire.RunItem:
    return wire.RunItem(
        id=row.id,
        status=_status(row, owner),
        started_at=_shown(row.started_at),
        completed_at=_shown(_completed(row, owner)),
        created_at=database_style(row.created_at),
    )


def _is_old(row: ListedRun | FoundRun, owner: RunOwner) -> bool:
    return row.status == "running" and row.epoch < owner.epoch


def _status(row: ListedRun | FoundRun, owner: RunOwner) -> RunStatus:
    return "cancelled" if _is_old(row, owner) else row.status


def _completed(row: ListedRun | FoundRun, owner: RunOwner) -> datetime | None:
    return owner.updated_at if _is_old(row, owner) else row.completed_at


def _shown(instant: datetime | None) -> str | None:
    return None if instant is None else database_style(instant)


def _decoded(output: str | None) -> dict[str, Any] | None:
    return None if output is None else msgspec.json.decode(output, type=dict[str, Any])
