"""How far a run is: how steps ended, and which of them are still ahead (automations.md 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from pillarbox.automations.graphs.graph import Condition, Graph, GraphStep, Outcome, WaitForEvent

StepStatus = Literal["pending", "running", "waiting", "completed", "failed", "skipped"]

OPEN: Final = frozenset({"running", "waiting"})
"""Steps that have begun and have not ended."""


class ReachedStep(NamedTuple):
    """A step with a row: its status there, and how it ended. Without an outcome no way leads on: it has not
    ended, or failed, or was a wait that was skipped."""

    status: StepStatus
    outcome: Outcome | None


def outcome_of(step: GraphStep, status: str, output: Any) -> Outcome | None:
    """Return the outcome of a step by its row; None where no connection leads on. A step that was skipped
    although its predecessor led to it takes its default connection; a wait has none."""
    if status not in ("completed", "skipped"):
        return None
    if isinstance(step.config, WaitForEvent | Condition):
        if status == "skipped" or output is None:
            return None
        if isinstance(step.config, WaitForEvent):
            return "event_received" if output["outcome"] == "event_received" else "timeout"
        return "condition_met" if output["result"] else "condition_not_met"
    return "default"


def statuses(
    graph: Graph, trigger: int, reached: Mapping[int, ReachedStep], *, ended: bool
) -> tuple[StepStatus, ...]:
    """Return the status of each step by position, from those that have rows. A step without a row is pending
    as long as a connection from an open step, or from the trigger, leads to it; then it is skipped. So is
    every open step when the run has ended."""
    ahead = frozenset[int]() if ended else _ahead(graph, trigger, reached)
    return tuple(
        _status(position, reached.get(position), ahead, ended) for position in range(len(graph.steps))
    )


def _status(position: int, row: ReachedStep | None, ahead: frozenset[int], ended: bool) -> StepStatus:
    if row is not None:
        return "skipped" if ended and row.status in OPEN else row.status
    return "pending" if position in ahead else "skipped"


def _ahead(graph: Graph, trigger: int, reached: Mapping[int, ReachedStep]) -> frozenset[int]:
    """Return the steps that connections may still lead to."""
    found: set[int] = set()
    to_see = [trigger]
    while to_see:
        position = to_see.pop()
        if position in found:
            continue
        found.add(position)
        row, step = reached.get(position), graph.steps[position]
        if row is None or row.status in OPEN:
            taken = step.outcomes
        else:
            taken = () if row.outcome is None else (row.outcome,)
        for outcome in taken:
            to_see.extend(graph.following(position, outcome))
    return frozenset(found)
