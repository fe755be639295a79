"""Distributing events: who listens is told of them, partition by partition (events.md section 4).

An event and all that follows from it are one transaction: its row is removed first, which only one process
can do, and then the receiver writes what it starts. A process that dies leaves the event as it was. So each
event is told once, and those of a contact in the order in which they were accepted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.contacts.engagement.events import ContactEvent, note
from pillarbox.events import prometheus, queries
from pillarbox.events.partitions import JOB, partition_with
from pillarbox.events.queries import WaitingEvent
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import RETRIED, Connection, TeamDb
from pillarbox.kernel.process import faults
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.kernel.work.fair_turns import Turns
from pillarbox.kernel.work.jobs import DecidedAtSettle, Job, JobFinished, JobLimit, JobPostponed

log = get("events")


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it was accepted at `at`. `contact_id` is the contact that has the address now, None where
    there is none yet; it cannot be deleted before the transaction ends. `payload` is JSON, with the values as
    the schema wants them. `known` is what the receiver has found out about it, and keeps when it is told
    again."""

    team_id: UUID
    id: UUID
    name: str
    contact_id: UUID | None
    email: EmailAddress
    payload: str
    at: datetime
    known: dict[Any, bool] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        """The payload."""
        found: dict[str, Any] = msgspec.json.decode(self.payload)
        return found


class TakesLongError(Exception):
    """Finding the effects of an event takes long: `find_out` does it while no transaction is open and nothing
    is held, and writes it into `known`. Then the event is told again."""

    def __init__(self, find_out: Callable[[TeamDb], Awaitable[None]]) -> None:
        super().__init__()
        self.find_out = find_out


class EventReceiver(Protocol):
    """A receiver of events. Without one, events are accepted and nothing follows."""

    async def listening(self, conn: Connection, team_id: UUID, names: Collection[str]) -> Collection[str]:
        """Return those of these names by which something may start or go on; the others are not distributed.
        A name that is left out must be one that nothing has listened to since before the call."""
        ...

    async def receive(self, conn: Connection, now: datetime, event: StoredEvent) -> None:
        """Write what follows from the event, inside the transaction that removes it. `now` is now.

        Events of one contact come one after the other; of different contacts at the same time, in other
        processes too. The receiver makes the contact where there is none and it needs one. Where it
        raises, nothing of the event has happened, and it is told again. For what takes longer than a
        transaction may it raises TakesLongError.
        """
        ...


LIMIT: Final = JobLimit(
    (JOB,),
    running=4,
    batch=4,
    pause=0.05,
    turns=Turns(slot_timeout=10.0, gap=timedelta(seconds=1), tries=1),
)
"""Partitions that one process works on at once; teams take turns."""

TURN: Final = 1.0
"""Seconds after which another partition comes first, if there is one."""

BATCH: Final = 100
"""Events of a partition that are read at once."""

TRIES: Final = 5
"""How often an event is told that nobody could take."""

GAP: Final = timedelta(seconds=5)


class _NotTakenError(Exception):
    """The receiver could not take an event; the partition waits."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Works on partitions."""

    pool: asyncpg.Pool
    clock: Clock
    receiver: EventReceiver | None

    async def run(self, job: Job) -> DecidedAtSettle | JobPostponed:
        """Distribute what is in the partition, as far as its turn goes."""
        partition = partition_with(job.subject_id)
        db = TeamDb(self.pool, job.team_id)
        try:
            until = self.clock.boottime() + TURN
            while events := await queries.waiting(db, partition, 1 if job.begun else BATCH):
                await self._distribute(db, events)
                if job.begun:
                    return JobPostponed(self.clock.now(), "one_by_one")
                if self.clock.boottime() >= until:
                    return JobPostponed(self.clock.now(), "others_wait")
        except RETRIED as trouble:
            log.warning("events.database_trouble", partition=partition, trouble=repr(trouble)[:200])
            return JobPostponed(self.clock.now() + GAP, "database_trouble")
        except _NotTakenError:
            return JobPostponed(self.clock.now() + GAP, "event_not_taken")
        return self._end(job, partition)

    async def give_up(self, job: Job) -> DecidedAtSettle:
        """Put the first event of the partition aside: three processes have died over it, one event each."""

        async def decide(conn: Connection) -> JobPostponed:
            db = TeamDb(conn, job.team_id)
            for event in await queries.waiting(db, partition_with(job.subject_id), 1):
                log.error("events.failed", id=event.id, reason="process_died")
                if await queries.fail(db, event.id, self.clock.now(), "process_died"):
                    prometheus.DISTRIBUTED.add(1, ("failed",))
            return JobPostponed(self.clock.now(), "event_failed")

        return DecidedAtSettle(decide)

    def _end(self, job: Job, partition: int) -> DecidedAtSettle:
        """End the job unless there are events again, or somebody is sending one; a request that sends one
        after that waits for the answer."""

        async def decide(conn: Connection) -> JobFinished | JobPostponed:
            db = TeamDb(conn, job.team_id)
            if not await queries.hold_job(db, job.id) or await queries.is_waiting(db, partition):
                return JobPostponed(self.clock.now(), "next_event")
            return JobFinished()

        return DecidedAtSettle(decide)

    async def _distribute(self, db: TeamDb, events: Sequence[WaitingEvent]) -> None:
        """Tell these events where somebody listens, and remove the others."""
        for event in await self._told(db, events):
            try:
                await self._tell(db, event)
            except RETRIED:
                raise
            except Exception:
                log.exception("events.not_taken", id=event.id)
                if not await self._try_counts(db, event.id, "internal_error"):
                    raise _NotTakenError from None

    async def _told(self, db: TeamDb, events: Sequence[WaitingEvent]) -> list[WaitingEvent]:
        """Return the events that are to be distributed now. What one event starts may listen to the next one
        of the same contact."""
        told, contacts = list[WaitingEvent](), set[str]()
        async with db.transaction() as inside:
            names = {event.name for event in events}
            heard: Collection[str] = ()
            if self.receiver is not None:
                heard = await self.receiver.listening(inside.connection, db.team_id, names)
            for event in events:
                if event.name in heard or event.address in contacts:
                    told.append(event)
                    contacts.add(event.address)
            ids = {event.id for event in told}
            unheard = [event for event in events if event.id not in ids]
            gone = set(await queries.remove(inside, [event.id for event in unheard])) if unheard else set()
            noted = [ContactEvent(one.address, one.name, one.at) for one in unheard if one.id in gone]
            await note(inside, noted)
            removed = len(gone)
        if removed:
            self._count("unheard", unheard, removed)
        return told

    async def _tell(self, db: TeamDb, event: WaitingEvent) -> None:
        """Tell one event, unless another process has done it meanwhile."""
        known: dict[Any, bool] = {}
        while True:
            try:
                await self._tell_now(db, event, known)
            except TakesLongError as long:
                await long.find_out(db)
            else:
                return

    async def _tell_now(self, db: TeamDb, event: WaitingEvent, known: dict[Any, bool]) -> None:
        assert self.receiver is not None
        outcome = "told"
        async with db.transaction() as inside:
            if not await queries.remove(inside, [event.id]):
                return
            contact_id = await queries.hold_contact(inside, event.address)
            if event.contact_id is not None and contact_id != event.contact_id:
                outcome = "contact_deleted"
            else:
                email = EmailAddress(event.address, event.email)
                stored = StoredEvent(
                    team_id=db.team_id,
                    id=event.id,
                    name=event.name,
                    contact_id=contact_id,
                    email=email,
                    payload=event.payload,
                    at=event.at,
                    known=known,
                )
                await self.receiver.receive(inside.connection, self.clock.now(), stored)
                await note(inside, [ContactEvent(event.address, event.name, event.at)])
            await faults.point("events.told")
        self._count(outcome, [event], 1)

    def _count(self, outcome: str, events: Sequence[WaitingEvent], removed: int) -> None:
        """Count these events, of which this process has removed `removed`."""
        now = self.clock.now()
        prometheus.DISTRIBUTED.add(removed, (outcome,))
        for event in events:
            prometheus.WAITED.observe(max(0.0, (now - event.at).total_seconds()))

    async def _try_counts(self, db: TeamDb, event_id: UUID, reason: str) -> bool:
        """Count a try that failed; True where it was the last one, and the others go on without the event."""
        if await queries.count_try(db, event_id) < TRIES:
            return False
        log.error("events.failed", id=event_id, reason=reason)
        if await queries.fail(db, event_id, self.clock.now(), reason):
            prometheus.DISTRIBUTED.add(1, ("failed",))
        return True
