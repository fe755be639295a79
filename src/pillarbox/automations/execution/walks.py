"""A run on its way through its graph, under the lock of its run: values only (automations.md 5).

A walk is told how steps ended. It begins what follows, as far as that needs nothing but the clock: delays and
waits wait, conditions are left for whoever knows what they read, everything else becomes work. What is to be
written stands in the walk; `state.write` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from pillarbox.automations.graphs.graph import (
    NEEDS_CONTACT,
    Condition,
    Delay,
    Graph,
    Outcome,
    WaitForEvent,
)

RunStatus = Literal["running", "completed", "failed", "cancelled"]


class LockedRun(NamedTuple):
    """A run whose row is locked; `waited` says whether it has received events."""

    id: UUID
    automation_id: UUID
    version: int
    epoch: int
    event_name: str
    contact_id: UUID
    status: RunStatus
    started_at: datetime | None
    contact_deleted_at: datetime | None


class StepFailure(NamedTuple):
    """Why a step failed, as runs show it."""

    name: str
    message: str


class StepChange(NamedTuple):
    """The new status of a step that was reached, with its times, output and error."""

    status: Literal["waiting", "completed", "failed", "skipped"]
    started_at: datetime | None
    completed_at: datetime | None
    output: Mapping[str, Any] | None = None
    error: StepFailure | None = None


class NewWork(NamedTuple):
    """Work that follows: a step that is ready, or one that waits."""

    due_at: datetime
    waiting: bool = False
    event_name: str | None = None
    waits_from: datetime | None = None


@dataclass(slots=True)
class Walk:
    """`reached` are steps with rows, `work` those with work: of both, what was there before the walk. At
    `now` it takes place. What becomes ready has its place among the steps of the contact at `order_at`, as
    the step had that it follows."""

    run: LockedRun
    graph: Graph
    now: datetime
    reached: frozenset[int]
    work: frozenset[int]
    status: RunStatus = "running"
    steps: dict[int, StepChange] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    ready: dict[int, NewWork] = field(default_factory=dict)
    undecided: list[int] = field(default_factory=list)
    waited: dict[str, Any] | None = None
    contact_deleted_at: datetime | None = None
    order_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.contact_deleted_at = self.run.contact_deleted_at
        self.order_at = self.now

    @property
    def is_over(self) -> bool:
        """Whether nothing of the run is carried out any more."""
        return self.status != "running"

    def finish(
        self, position: int, outcome: Outcome = "default", output: Mapping[str, Any] | None = None
    ) -> None:
        """Complete a step with this outcome, and go on from it."""
        self._end(position, StepChange("completed", self.now, self.now, output))
        self._follow(position, outcome)

    def decide(self, position: int, *, result: bool) -> None:
        """Complete a condition with its result."""
        outcome: Outcome = "condition_met" if result else "condition_not_met"
        self.finish(position, outcome, {"result": result})

    def skip(self, position: int) -> None:
        """Leave out a step although a connection led to it. It goes on by its default connection; a wait has
        none."""
        self._end(position, StepChange("skipped", None, self.now))
        if not isinstance(self.graph.steps[position].config, WaitForEvent):
            self._follow(position, "default")

    def fail(self, position: int, failure: StepFailure) -> None:
        """Fail a step, and the run with it."""
        self._end(
            position,
            StepChange(
                status="failed", started_at=self.now, completed_at=self.now, output=None, error=failure
            ),
        )
        self._stop("failed")

    def cancel(self) -> None:
        """Cancel the run where it is."""
        self._stop("cancelled")

    def close(self) -> None:
        """Complete the run after its last change, where nothing is left to do."""
        if not self.is_over and not self.ready and not self.undecided and self.work <= self.done:
            self.status = "completed"

    def defer(self) -> None:
        """Leave conditions for later."""
        for position in self.undecided:
            if position not in self.work:
                self.ready[position] = NewWork(self.now)
        self.undecided.clear()

    def _end(self, position: int, change: StepChange) -> None:
        self.steps[position] = change
        self.done.add(position)

    def _stop(self, status: RunStatus) -> None:
        self.status = status
        self.done |= self.work
        self.ready.clear()
        self.undecided.clear()

    def _follow(self, position: int, outcome: Outcome) -> None:
        for target in self.graph.following(position, outcome):
            if not self._is_reached(target):
                self._begin(target)

    def _is_reached(self, position: int) -> bool:
        """Return whether a step was reached before: only the first connection to it counts."""
        return (
            position in self.reached
            or position in self.steps
            or position in self.work
            or position in self.ready
            or position in self.undecided
        )

    def _begin(self, position: int) -> None:
        config = self.graph.steps[position].config
        if self.contact_deleted_at is not None and isinstance(config, NEEDS_CONTACT):
            self.skip(position)
            return
        match config:
            case Condition():
                self.undecided.append(position)
            case Delay():
                self.steps[position] = StepChange("waiting", self.now, None)
                self.ready[position] = NewWork(self.now + config.duration.length, waiting=True)
            case WaitForEvent():
                self.steps[position] = StepChange("waiting", self.now, None)
                self.ready[position] = NewWork(
                    self.now + config.longest,
                    waiting=True,
                    event_name=config.event_name,
                    waits_from=self.now,
                )
            case _:
                self.ready[position] = NewWork(self.now)
