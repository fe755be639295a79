"""Prometheus metrics of automations (OPS-06)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from pillarbox.automations.execution.walks import Walk
from pillarbox.automations.graphs.graph import StepType
from pillarbox.kernel.observability.metrics import SECONDS, Counter, Histogram

STARTED = Counter("pillarbox_automation_runs_started", "Runs that events started.")
ENDED = Counter(
    "pillarbox_automation_runs",
    "Runs that ended, as they were carried out; those that were stopped from outside are not in it.",
    ("status",),
    [("completed",), ("failed",), ("cancelled",)],
)
STEPS = Counter(
    "pillarbox_automation_steps",
    "Steps that ended.",
    ("type", "status"),
    [(kind, "completed") for kind in get_args(StepType)],
)
LATE = Histogram(
    "pillarbox_automation_late_seconds", "How long after they were due steps were claimed.", SECONDS
)
TROUBLE = Counter("pillarbox_automation_trouble", "Steps that could not be carried out and are tried again.")
RECOVERED = Counter("pillarbox_automation_recovered", "Steps whose process died, and that are tried again.")


def count(walks: Sequence[Walk]) -> None:
    """Count what became of these runs, once it is committed."""
    for walk in walks:
        if walk.run.status != "running":
            continue
        if walk.is_over:
            ENDED.add(1, (walk.status,))
        for position, step in walk.steps.items():
            if step.status != "waiting":
                STEPS.add(1, (walk.graph.steps[position].type, step.status))
