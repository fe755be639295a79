"""What follows from an event: runs start, and waits end (automations.md 5)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from pillarbox.automations.execution import contact_queries, prometheus, state_queries
from pillarbox.automations.execution.state import AT_ONCE, Opened, open_runs, write
from pillarbox.automations.execution.state_queries import FoundTrigger, NewRun, WorkRow
from pillarbox.automations.execution.versions import Versions
from pillarbox.automations.graphs.evaluation import Facts, holds_in_turns
from pillarbox.automations.graphs.graph import WaitForEvent
from pillarbox.contacts.change import NOTHING
from pillarbox.contacts.store import Contacts
from pillarbox.events.distribution import StoredEvent
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, TeamDb, after_commit


@dataclass(frozen=True, slots=True)
class Receiving:
    """Takes events for automations. `wake` is called after the commit where there is something to do."""

    ids: Ids
    contacts: Contacts
    versions: Versions
    wake: Callable[[], None]

    async def listening(self, conn: Connection, team_id: UUID, names: Collection[str]) -> Collection[str]:
        """Those of these names that start something or are waited for."""
        return await state_queries.listening(TeamDb(conn, team_id), list(names))

    async def receive(self, conn: Connection, at: datetime, event: StoredEvent) -> None:
        """Start a run for each trigger that was there when the event was accepted, and end the waits that
        began before."""
        db = TeamDb(conn, event.team_id)
        triggers = await state_queries.triggers(db, event.name, event.at)
        contact_id = event.contact_id
        if contact_id is None:
            if not triggers:
                return
            contact_id = (await self.contacts.upsert(db, event.email, NOTHING)).id
        await self._end_waits(db, contact_id, at, event)
        for trigger in triggers:
            await self._start(db, contact_id, at, event, trigger)
        after_commit(conn, self.wake)

    async def _start(
        self, db: TeamDb, contact_id: UUID, at: datetime, event: StoredEvent, trigger: FoundTrigger
    ) -> None:
        new = NewRun(self.ids.new(), trigger, event.id, event.name, contact_id, event.payload, at)
        if await state_queries.insert_run(db, new):
            graph = await self.versions.graph(db, trigger.automation_id, trigger.version)
            position = graph.positions[trigger.trigger_key]
            await state_queries.add_work(db, [(new.id, position, contact_id, at, False, None, None)])
            after_commit(db.connection, partial(prometheus.STARTED.add, 1))

    async def _end_waits(self, db: TeamDb, contact_id: UUID, at: datetime, event: StoredEvent) -> None:
        waiting = await state_queries.waits(db, contact_id, event.name, event.at)
        if not waiting:
            return
        dates = await contact_queries.dates(db, [event.name])
        facts = Facts(event.values, event_name=event.name, dates=dates)
        for first in range(0, len(waiting), AT_ONCE):
            runs = await open_runs(db, self.versions, waiting[first : first + AT_ONCE], at)
            ended = [one for one in runs.values() if await end_waits(one, event, facts)]
            known = await state_queries.waited(db, [one.walk.run.id for one in ended])
            for one in ended:
                before: dict[str, Any] = msgspec.json.decode(known.get(one.walk.run.id, "{}"))
                one.walk.waited = {**before, event.name: facts.event}
                if one.walk.graph.is_heavy:
                    one.walk.defer()
            await write(db, [one.walk for one in runs.values()])


async def end_waits(opened: Opened, event: StoredEvent, facts: Facts) -> bool:
    """End the waits of a run that the event ends; whether there are any."""
    walk, has_ended = opened.walk, False
    for row in opened.work:
        if walk.is_over or not _counts(row, event):
            continue
        config = walk.graph.steps[row.position].config
        assert isinstance(config, WaitForEvent)
        if config.filter_rule is None or await holds_in_turns(config.filter_rule, facts):
            walk.finish(row.position, "event_received", {"outcome": "event_received"})
            has_ended = True
    return has_ended


def _counts(row: WorkRow, event: StoredEvent) -> bool:
    """Whether the event was accepted while the step waited for it."""
    return (
        row.event_name == event.name
        and row.waits_from is not None
        and (row.waits_from <= event.at < row.due_at)
    )
