"""Shapes of runs (automations.md 4, routes 8 and 9); field order is the contract's."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from msgspec import Struct

from pillarbox.automations.graphs.graph import StepType
from pillarbox.automations.graphs.progress import StepStatus
from pillarbox.automations.runs.queries import RunStatus
from pillarbox.kernel.wire.instants import DatabaseTime


class RunItem(Struct):
    """`started_at` is null until its first step was carried out."""

    id: UUID
    status: RunStatus
    started_at: DatabaseTime | None
    completed_at: DatabaseTime | None
    created_at: DatabaseTime


class StepError(Struct):
    name: str
    message: str


class RunStep(Struct):
    """What `output` has depends on `type`."""

    key: str
    type: StepType
    status: StepStatus
    started_at: DatabaseTime | None
    completed_at: DatabaseTime | None
    output: dict[str, Any] | None
    error: StepError | None
    created_at: DatabaseTime


class FullRun(Struct):
    """`steps` are all of the version that the run walks, in topological order."""

    object: Literal["automation_run"]
    id: UUID
    status: RunStatus
    started_at: DatabaseTime | None
    completed_at: DatabaseTime | None
    created_at: DatabaseTime
    steps: list[RunStep]
