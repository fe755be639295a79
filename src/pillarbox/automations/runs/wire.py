"""Shapes of runs (automations.md 4, routes 8 and 9); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from pillarbox.automations.graphs.graph import StepType
from pillarbox.automations.graphs.progress import StepStatus
from pillarbox.automations.runs.queries import RunStatus
from pillarbox.kernel.wire.instants import DatabaseTime

Output = Annotated[
    Any,
    Meta(extra_json_schema={"type": ["object", "null"], "description": "What it has depends on `type`."}),
]


class RunItem(Struct, kw_only=True):
    """`started_at` is null until its first step was carried out."""

    id: UUID
    status: RunStatus
    started_at: DatabaseTime | None
    completed_at: DatabaseTime | None
    created_at: DatabaseTime


class StepError(Struct, kw_only=True):
    name: str
    message: str


class RunStep(Struct, kw_only=True):
    key: str
    type: StepType
    status: StepStatus
    started_at: DatabaseTime | None
    completed_at: DatabaseTime | None
    output: Output
    error: StepError | None
    created_at: DatabaseTime


class FullRun(Struct, kw_only=True):
    """`steps` are all of the version that the run walks, in topological order."""

    object: Literal["automation_run"]
    id: UUID
    status: RunStatus
    started_at: DatabaseTime | None
    completed_at: DatabaseTime | None
    created_at: DatabaseTime
    steps: list[RunStep]
