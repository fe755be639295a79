"""Handles an event that was received: starts runs and ends waits (automations.md 5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.automations.execution import contact_queries, prometheus, state_queries
from pillarbox.automations.execution.state import AT_ONCE, OpenedRun, open_runs, write
from pillarbox.automations.execution.state_queries import FoundTrigger, NewRun, RunWait, WorkRow
from pillarbox.automations.execution.versions import GraphVersions
from pillarbox.automations.graphs.evaluation import EvaluationInput, holds_in_turns
from pillarbox.automations.graphs.graph import MAIL_EVENTS, Graph, WaitForEvent
from pillarbox.contacts.change import NOTHING
from pillarbox.contacts.store import Contacts
from pillarbox.events.distribution import StoredEvent, TakesLongError
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, TeamDb, after_commit

MOST_FILTERS: Final = 10
"""Filters that are decided while the event's contact is held; more of them, and large ones, come before."""


TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Waits:
    """The runs with waits that an event may end, and what the filters of these waits say of the event."""

    run_ids: list[UUID]
    facts: EvaluationInput
    known: dict[tuple[UUID, int, int], bool] = field(default_factory=dict)
    places: frozenset[tuple[UUID, int]] = frozenset()
    """Run and position of each wait, for events of mail: which of them count was found with their runs."""

    def counts(self, row: WorkRow, event: StoredEvent) -> bool:
        """Return whether the event happened while the step waited for it, or is one of the run's own mail."""
        if row.event_name != event.name or row.waits_from is None or event.at >= row.due_at:
            return False
        return row.waits_from <= event.at or (row.run_id, row.position) in self.places

    async def ends(self, wait: RunWait, graph: Graph) -> bool:
        """Return whether the event passes the filter of the wait; each filter is evaluated once."""
        name = wait.filter
        if name not in self.known:
            config = graph.steps[wait.position].config
            assert isinstance(config, WaitForEvent)
            rule = config.filter_rule
            self.known[name] = rule is None or await holds_in_turns(rule, self.facts)
        return self.known[name]


@dataclass(frozen=True, slots=True)
class AutomationTriggers:
    """Takes events for automations. `wake` is called after the commit where there is something to do."""

    ids: Ids
    contacts: Contacts
    versions: GraphVersions
    wake: Callable[[], None]

    async def listening(self, conn: Connection, team_id: UUID, names: Collection[str]) -> Collection[str]:
        """Return those of these names that start a run or are waited for."""
        return await state_queries.listening(TeamDb(conn, team_id), list(names))

    async def receive(self, conn: Connection, now: datetime, event: StoredEvent) -> None:
        """Start a run for each trigger that was there when the event was accepted, and end the waits that
        began before."""
        db = TeamDb(conn, event.team_id)
        contact_id = event.contact_id
        if contact_id is not None:
            await _await_step(db, contact_id)
        waits = None if contact_id is None else await self._waits(db, contact_id, event)
        triggers = await state_queries.triggers(db, event.name, event.at)
        if contact_id is None:
            if not triggers:
                return
            contact_id = (await self.contacts.upsert(db, event.email, NOTHING)).id
        order_at = await _behind(db, contact_id, now)
        waits = waits or await self._waits(db, contact_id, event)
        await self._end_waits(db, now, order_at, event, waits)
        for trigger in triggers:
            await self._start(db, contact_id, now, order_at, event, trigger)
        after_commit(conn, self.wake)

    async def _start(
        self,
        db: TeamDb,
        contact_id: UUID,
        now: datetime,
        order_at: datetime,
        event: StoredEvent,
        trigger: FoundTrigger,
    ) -> None:
        new = NewRun(
            id=self.ids.new(),
            trigger=trigger,
            event_id=event.id,
            event_name=event.name,
            contact_id=contact_id,
            payload=event.payload,
            at=now,
        )
        if await state_queries.insert_run(db, new):
            graph = await self.versions.graph(db, trigger.automation_id, trigger.version)
            position = graph.positions[trigger.trigger_key]
            row = (new.id, position, contact_id, now, False, None, None, order_at)
            await state_queries.add_work(db, [row])
            after_commit(db.connection, partial(prometheus.STARTED.add, 1))

    async def _waits(self, db: TeamDb, contact_id: UUID, event: StoredEvent) -> Waits:
        """Return the waits that the event may end. What their filters say is found here, before runs are
        locked: it is the same for all of them. What takes longer is found before the transaction."""
        found = await _waits_of(db, contact_id, event)
        facts = await self._facts(db, event) if found else EvaluationInput({})
        places = frozenset((wait.run_id, wait.position) for wait in found)
        waits = Waits(sorted({one.run_id for one in found}), facts, event.known, places)
        new = list({one.filter: one for one in found if one.filter not in event.known}.values())
        if len(new) > MOST_FILTERS or any([(await self._graph(db, one)).has_heavy_filters for one in new]):
            raise TakesLongError(partial(self._decide, waits, new))
        await self._decide(waits, new, db)
        return waits

    async def _decide(self, waits: Waits, run_waits: Sequence[RunWait], db: TeamDb) -> None:
        for one in run_waits:
            await waits.ends(one, await self._graph(db, one))

    async def _graph(self, db: TeamDb, wait: RunWait) -> Graph:
        return await self.versions.graph(db, wait.automation_id, wait.version)

    async def _facts(self, db: TeamDb, event: StoredEvent) -> EvaluationInput:
        dates = await contact_queries.dates(db, [event.name])
        return EvaluationInput(event.values, event_name=event.name, dates=dates)

    async def _end_waits(
        self, db: TeamDb, now: datetime, order_at: datetime, event: StoredEvent, waits: Waits
    ) -> None:
        for first in range(0, len(waits.run_ids), AT_ONCE):
            runs = await open_runs(db, self.versions, waits.run_ids[first : first + AT_ONCE], now)
            ended = [one for one in runs.values() if await end_waits(one, event, waits)]
            known = await state_queries.waited(db, [one.walk.run.id for one in ended])
            for one in ended:
                before: dict[str, Any] = msgspec.json.decode(known.get(one.walk.run.id, "{}"))
                one.walk.waited = {**before, event.name: waits.facts.event}
                one.walk.order_at = order_at
                # What the events before have brought about may not be written yet.
                one.walk.defer()
            await write(db, [one.walk for one in runs.values()])


async def _await_step(db: TeamDb, contact_id: UUID) -> None:
    """Return when the step that is being carried out for a contact is committed: it may begin a wait that the
    event ends. No lock is kept, so who locks several runs in order meets no other order here."""
    run_id = await state_queries.carried_out(db, contact_id)
    if run_id is None:
        return
    with suppress(_LockReleased):
        async with db.transaction() as inside:
            await state_queries.share(inside, run_id)
            raise _LockReleased


class _LockReleased(Exception):  # noqa: N818 - it ends a part of a transaction, with its locks
    """The lock was met."""


async def _waits_of(db: TeamDb, contact_id: UUID, event: StoredEvent) -> list[RunWait]:
    """Return the waits that the event may end: of one of mail, those of its own run or, where that has sent
    none, of the contact."""
    if event.name not in MAIL_EVENTS:
        return await state_queries.waits(db, contact_id, event.name, event.at)
    email_id = str(event.values.get("email_id", ""))
    return await state_queries.mail_waits(db, contact_id, event.name, event.at, email_id)


async def _behind(db: TeamDb, contact_id: UUID, now: datetime) -> datetime:
    """Return a place behind all steps that are ready for a contact, also where another clock was ahead."""
    last = await state_queries.last_order(db, contact_id)
    return now if last is None else max(now, last + TICK)


async def end_waits(opened: OpenedRun, event: StoredEvent, waits: Waits) -> bool:
    """End the waits of a run that the event ends; whether there are any."""
    walk, has_ended = opened.walk, False
    for row in opened.work:
        if walk.is_over or not waits.counts(row, event):
            continue
        wait = RunWait(walk.run.id, walk.run.automation_id, walk.run.version, row.position)
        if await waits.ends(wait, walk.graph):
            walk.finish(row.position, "event_received", {"outcome": "event_received"})
            has_ended = True
    return has_ended
