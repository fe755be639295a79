"""Walks a graph as a run would, by the code that carries out runs, and writes nothing.

Steps are taken in the order of their time, each of the same instant by its position. An event comes behind
the steps of its instant, so one that comes exactly when a wait ends is too late, as in a run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.automations.execution import changes, timers
from pillarbox.automations.execution.facts import Dates, RunFacts
from pillarbox.automations.execution.mail import ContactGone, MailMaker, MailSkipped, failure_of
from pillarbox.automations.execution.receiving import Waits, end_waits
from pillarbox.automations.execution.state import OpenedRun, is_for_nobody, settle
from pillarbox.automations.execution.state_queries import WorkRow
from pillarbox.automations.execution.walks import (
    LockedRun,
    NewWork,
    RunStatus,
    StepChange,
    StepFailure,
    Walk,
)
from pillarbox.automations.graphs import progress
from pillarbox.automations.graphs.evaluation import EvaluationInput
from pillarbox.automations.graphs.graph import (
    AddToSegment,
    ContactDelete,
    ContactUpdate,
    Graph,
    SendEmailStep,
)
from pillarbox.automations.graphs.progress import ReachedStep, StepStatus
from pillarbox.automations.simulation.contact import SimulatedContact
from pillarbox.contact_properties import definitions
from pillarbox.emails.outgoing import OutgoingEmail
from pillarbox.events.distribution import StoredEvent
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.kernel.wire.problems import Invalid, Problem
from pillarbox.segments.lookup import present

NOBODY: Final = UUID(int=0)


class SimulatedEvent(NamedTuple):
    """An event of the contact that comes at this instant."""

    at: datetime
    name: str
    payload: Mapping[str, Any]


class SimulationStep(NamedTuple):
    """An entry of the simulation's log: a step that changed, or an event that arrived (`position` is None).
    `due_at` is when a waiting step goes on."""

    at: datetime
    position: int | None
    status: str
    output: Mapping[str, Any] | None = None
    error: StepFailure | None = None
    due_at: datetime | None = None
    event: str | None = None
    mail: OutgoingEmail | None = None


@dataclass(slots=True)
class SimulatedRun:
    """A run for one contact. `may_send` raises where the team may not send a mail."""

    db: TeamDb
    graph: Graph
    trigger: int
    contact: SimulatedContact
    event: SimulatedEvent
    dates: Dates
    maker: MailMaker
    may_send: Callable[[OutgoingEmail], Awaitable[object]]
    status: RunStatus = "running"
    happened: list[SimulationStep] = field(default_factory=list)
    steps: dict[int, StepChange] = field(default_factory=dict)
    work: dict[int, NewWork] = field(default_factory=dict)
    waited: dict[str, Any] = field(default_factory=dict)
    deleted_at: datetime | None = None
    ended_at: datetime | None = None

    async def go(self, events: Sequence[SimulatedEvent]) -> None:
        """Take place, with these events of the contact, until nothing is left to do."""
        self.work[self.trigger] = NewWork(self.event.at)
        left = sorted(events, key=lambda one: one.at)
        while self.work:
            due_at, position = min((one.due_at, position) for position, one in self.work.items())
            if left and left[0].at < due_at:
                await self._receive(left.pop(0))
            else:
                await self._carry_out(position, due_at)
        for one in left:
            self._say(SimulationStep(one.at, None, "too late", event=one.name))

    def statuses(self) -> tuple[StepStatus, ...]:
        """Return the status of each step, by position."""
        reached = {
            position: ReachedStep(
                one.status, progress.outcome_of(self.graph.steps[position], one.status, one.output)
            )
            for position, one in self.steps.items()
        }
        return progress.statuses(self.graph, self.trigger, reached, ended=self.status != "running")

    # One after the other ---------------------------------------------------------------------------

    async def _receive(self, event: SimulatedEvent) -> None:
        if self.contact.is_deleted:
            # It would be another contact.
            self._say(SimulationStep(event.at, None, "not awaited", event=event.name))
            return
        walk = self._walk(event.at)
        rows = [
            WorkRow(
                run_id=walk.run.id,
                position=position,
                owner=None,
                attempt=0,
                due_at=one.due_at,
                event_name=one.event_name,
                waits_from=one.waits_from,
            )
            for position, one in sorted(self.work.items())
        ]
        stored = StoredEvent(
            team_id=self.db.team_id,
            id=NOBODY,
            name=event.name,
            contact_id=self.contact.id,
            email=EmailAddress(self.contact.address, None),
            payload=msgspec.json.encode(event.payload).decode(),
            at=event.at,
        )
        facts = EvaluationInput(stored.values, event_name=event.name, dates=self.dates)
        has_ended = await end_waits(OpenedRun(walk, rows), stored, Waits([walk.run.id], facts))
        self._say(
            SimulationStep(event.at, None, "received" if has_ended else "not awaited", event=event.name)
        )
        if has_ended:
            self.waited = {**self.waited, event.name: stored.values}
        await self._take(walk)

    async def _carry_out(self, position: int, now: datetime) -> None:
        walk = self._walk(now)
        mail: OutgoingEmail | None = None
        config = self.graph.steps[position].config
        match config:
            case SendEmailStep():
                mail = await self._send(walk, position, config)
            case ContactUpdate() | AddToSegment() if self.contact.is_deleted:
                is_for_nobody(walk, position)
            case ContactUpdate() | AddToSegment():
                failure = await self._change(config)
                if failure is None:
                    walk.finish(position)
                else:
                    walk.fail(position, failure)
            case ContactDelete():
                self.contact.is_deleted = True
                walk.contact_deleted_at = walk.contact_deleted_at or now
                walk.finish(position)
            case _:
                timers.advance(walk, position)
        await self._take(walk, mail)

    async def _send(self, walk: Walk, position: int, config: SendEmailStep) -> OutgoingEmail | None:
        [made] = await self.maker.made(self.db, [(config, self._facts())], walk.now)
        if isinstance(made, OutgoingEmail):
            try:
                await self.may_send(made)
            except Problem as problem:
                made = failure_of(problem)
        if isinstance(made, StepFailure):
            walk.fail(position, made)
        elif isinstance(made, ContactGone):
            is_for_nobody(walk, position)
        elif isinstance(made, MailSkipped):
            walk.skip(position)
        else:
            walk.finish(position)
            return made
        return None

    async def _change(self, config: ContactUpdate | AddToSegment) -> StepFailure | None:
        if isinstance(config, AddToSegment):
            if await present(self.db, [config.segment_id]):
                return None
            return StepFailure("segment_not_found", f"There is no segment `{config.segment_id}`.")
        kinds = {one.key: one.type for one in await definitions.definitions(self.db)}
        try:
            change = await changes.wanted(self.db, config, self._facts().event())
            for key, value in change.properties.items():
                if value is not None:
                    definitions.refuse(value, kinds[key], f"properties.{key}")
        except changes.ValueRefused as unfit:
            return unfit.failure
        except Invalid as problem:
            return StepFailure("invalid_variable", problem.message)
        self.contact.change(change)
        return None

    # What a walk sees, and what becomes of it ------------------------------------------------------

    def _walk(self, now: datetime) -> Walk:
        run = LockedRun(
            *(NOBODY, NOBODY, 1, 0, self.event.name, self.contact.id, self.status),
            started_at=self.event.at,
            contact_deleted_at=self.deleted_at,
        )
        return Walk(
            run=run, graph=self.graph, now=now, reached=frozenset(self.steps), work=frozenset(self.work)
        )

    def _facts(self) -> RunFacts:
        return RunFacts(
            event_name=self.event.name,
            payload=dict(self.event.payload),
            waited=self.waited,
            contact=self.contact.facts(),
            address=self.contact.address,
            dates=self.dates,
        )

    async def _take(self, walk: Walk, mail: OutgoingEmail | None = None) -> None:
        await settle(walk, self._facts())
        walk.close()
        for position, change in walk.steps.items():
            due_at = walk.ready[position].due_at if position in walk.ready else None
            sends = mail if position in walk.done and change.status == "completed" else None
            is_mail = isinstance(self.graph.steps[position].config, SendEmailStep)
            self._say(
                SimulationStep(
                    *(walk.now, position, change.status, change.output, change.error, due_at),
                    mail=sends if is_mail else None,
                )
            )
            self.steps[position] = change
        for position in walk.done:
            self.work.pop(position, None)
        self.work.update(walk.ready)
        self.deleted_at = walk.contact_deleted_at
        if walk.is_over and self.status == "running":
            self.status, self.ended_at = walk.status, walk.now

    def _say(self, simulation_step: SimulationStep) -> None:
        self.happened.append(simulation_step)
