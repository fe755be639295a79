"""Making, changing, duplicating, stopping and deleting automations (automations.md 4).

Each operation holds the row of the automation while it looks and changes, so that operations on one come
one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final
from uuid import UUID

from msgspec import UNSET

from pillarbox.automations import ending_queries, mail_events, queries
from pillarbox.automations.graphs.graph import Graph
from pillarbox.automations.graphs.stored import StoredGraph
from pillarbox.automations.queries import JOB_END, Automation
from pillarbox.automations.references import check_references
from pillarbox.automations.wire import MOST_NAME, ChangedAutomation, NewAutomation, NewGraph
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.wire.problems import Conflict, Invalid, NotFound
from pillarbox.kernel.work import job_queries
from pillarbox.webhooks.listening.subscriptions import EventSubscription

COPY: Final = " (copy)"

CANCELLED_AT_ONCE: Final = 5000
"""So many runs are cancelled in the request that stops an automation; a job does the rest."""


class GraphInUse(Invalid):
    def __init__(self) -> None:
        super().__init__(
            "The steps of an enabled automation cannot be replaced. Disable it first, or set `status` to "
            "`disabled` in the same request."
        )


class ChangedMeanwhile(Conflict):
    """Somebody else has changed the automation since the caller read it."""

    def __init__(self) -> None:
        super().__init__("The automation has been changed meanwhile.")


def edition_of(name: str, status: str, version: int) -> str:
    """Return a text that is another one after every change of an automation; no clock is asked."""
    return sha256(f"{version} {status} {name}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class AutomationChanges:
    """The changes. `wake` looks for jobs that are due, after the commit."""

    ids: Ids
    wake: Callable[[], None]
    subscription: EventSubscription

    async def create(self, db: TeamDb, new: NewAutomation) -> UUID:
        automation_id = await self._insert(db, new.name, new.graph.stored)
        if new.status == "enabled":
            await self._enable(db, automation_id, new.graph.graph)
        return automation_id

    async def change(
        self,
        db: TeamDb,
        automation_id: UUID,
        change: ChangedAutomation,
        *,
        edition: str | None = None,
    ) -> None:
        """Change the automation. With `edition` only if it still is that one."""
        known = await self._read(db, automation_id, change)
        before = await held(db, automation_id)
        if edition not in (None, edition_of(before.name, before.status, before.version)):
            raise ChangedMeanwhile
        will_be = before.status if change.status is UNSET else change.status
        if change.graph is not None and before.status == will_be == "enabled":
            raise GraphInUse
        if before.status == "enabled" and will_be == "disabled":
            await self._disable(db, automation_id)
        after = await self._update(db, before, change)
        if before.status == "disabled" and will_be == "enabled":
            # Somebody may have changed it before it was held.
            is_known = known is not None and known.stored == after.stored
            graph = known.graph if known is not None and is_known else await after.graph()
            await self._enable(db, automation_id, graph)

    async def _read(self, db: TeamDb, automation_id: UUID, change: ChangedAutomation) -> NewGraph | None:
        """Return the graph that is to be enabled, if any. A large one waits for a thread, so it is read
        before the row of the automation is held."""
        if change.graph is not None:
            return change.graph
        if change.status != "enabled":
            return None
        automation = await found(db, automation_id)
        if automation.status == "enabled":
            return None
        return NewGraph(await automation.graph(), automation.stored)

    async def duplicate(self, db: TeamDb, automation_id: UUID) -> UUID:
        """Create a copy of the automation that is disabled; return its id."""
        original = await found(db, automation_id)
        return await self._insert(db, original.name[: MOST_NAME - len(COPY)] + COPY, original.stored)

    async def stop(self, db: TeamDb, automation_id: UUID) -> None:
        """Disable the automation and cancel its runs: from the commit on none is started, and none goes
        on."""
        before = await held(db, automation_id)
        if before.status == "enabled":
            await self._disable(db, automation_id)
        if await self._cancel(db, automation_id) == CANCELLED_AT_ONCE:
            await self._end_later(db, automation_id)

    async def delete(self, db: TeamDb, automation_id: UUID) -> None:
        """Delete the automation and cancel its runs: from the commit on nobody sees them, and none goes
        on."""
        before = await held(db, automation_id)
        if before.status == "enabled":
            await self._disable(db, automation_id)
        await queries.mark_deleted(db, automation_id, self.ids.now())
        await self._cancel(db, automation_id)
        await self._end_later(db, automation_id)

    async def _insert(self, db: TeamDb, name: str, graph: StoredGraph) -> UUID:
        stamp = self.ids.stamp()
        new = Automation(
            id=stamp.id,
            name=name,
            status="disabled",
            version=1,
            epoch=0,
            stored=graph,
            created_at=stamp.at,
            updated_at=stamp.at,
        )
        await queries.insert(db, new)
        await queries.insert_version(db, new.id, new.version, graph, stamp.at)
        return new.id

    async def _update(self, db: TeamDb, before: Automation, change: ChangedAutomation) -> Automation:
        """Write a new name and a new graph; returns what it is now."""
        after = before if change.name is UNSET else replace(before, name=change.name)
        if change.graph is not None and change.graph.stored != before.stored:
            after = replace(after, stored=change.graph.stored, version=before.version + 1)
            await queries.insert_version(db, after.id, after.version, after.stored, self.ids.now())
        if after != before:
            await queries.update(db, replace(after, updated_at=self.ids.now()))
        return after

    async def _enable(self, db: TeamDb, automation_id: UUID, graph: Graph) -> None:
        await check_references(db, graph)
        await mail_events.subscribe(db, self.subscription, graph, self.ids.now())
        await queries.enable(db, automation_id, graph.triggers, self.ids.now())

    async def _disable(self, db: TeamDb, automation_id: UUID) -> None:
        await queries.disable(db, automation_id, self.ids.now())
        await queries.remove_triggers(db, automation_id)

    async def _cancel(self, db: TeamDb, automation_id: UUID) -> int:
        """Begin a new epoch, and cancel runs of those before; returns how many. A statement of its own
        after the triggers are gone: it sees every run that was started."""
        epoch = await queries.next_epoch(db, automation_id)
        now: datetime = self.ids.now()
        return await ending_queries.cancel_runs(db, automation_id, epoch, CANCELLED_AT_ONCE, now)

    async def _end_later(self, db: TeamDb, automation_id: UUID) -> None:
        now = self.ids.now()
        await job_queries.restart(db, self.ids.new(), JOB_END, automation_id, now, now)
        after_commit(db.connection, self.wake)


async def found(db: TeamDb, automation_id: UUID) -> Automation:
    """Return the automation, or raise a 404."""
    automation = await queries.get(db, automation_id)
    if automation is None:
        raise NotFound("Automation")
    return automation


async def held(db: TeamDb, automation_id: UUID) -> Automation:
    """Return the automation, locked until the transaction ends, or raise a 404."""
    await queries.hold(db, automation_id)
    return await found(db, automation_id)
