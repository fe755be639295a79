"""The job that does an act on many contacts, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import asyncpg

from pillarbox.contacts.bulk_acts import queries
from pillarbox.contacts.bulk_acts.queries import JOB, ChosenContact, RunningBulkAct
from pillarbox.contacts.conditions import membership
from pillarbox.contacts.conditions.filtering import ContactFilter
from pillarbox.contacts.conditions.parsing import stored_condition
from pillarbox.contacts.store import Contacts
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import RETRIED, TeamDb
from pillarbox.kernel.process import faults
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.kernel.work import job_queries
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.jobs import EndingHandler, Handler, Job, JobFinished, JobLimit, JobPostponed
from pillarbox.kernel.work.periodic import Periodic

log = get("contacts")

LIMIT: Final = JobLimit((JOB,), running=2, batch=2, pause=0.1)
"""Of their own: an act on a million contacts delays no other job."""

BATCH: Final = 100
TURN: Final = timedelta(seconds=30)
"""After so long the acts of others come first, if there are any."""

TROUBLE_GAP: Final = timedelta(seconds=5)
KEPT: Final = timedelta(days=30)
SEGMENT_GONE: Final = "segment_deleted"
INTERNAL: Final = "internal_error"


@dataclass(frozen=True, slots=True)
class BulkActJobs:
    """Does acts, and removes old ones."""

    pool: asyncpg.Pool
    clock: Clock
    contacts: Contacts

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB: EndingHandler(self.run, self.give_up)}

    def periodic(self) -> list[Periodic]:
        return [Periodic("contacts.bulk_act_retention", timedelta(hours=1), self.collect)]

    async def run(self, job: Job) -> JobFinished | JobPostponed:
        """Do the act as far as its turn goes."""
        db = TeamDb(self.pool, job.team_id)
        until = self.clock.boottime() + TURN.total_seconds()
        try:
            running = await queries.take(db, job.subject_id)
            while running is not None and await self._batch(db, job, running):
                if self.clock.boottime() >= until:
                    return JobPostponed(self.clock.now(), "others_wait")
                running = await queries.take(db, job.subject_id)
        except RETRIED as trouble:
            log.warning("contacts.bulk_act_trouble", id=job.subject_id, trouble=repr(trouble)[:200])
            return JobPostponed(self.clock.now() + TROUBLE_GAP, "database_trouble")
        return JobFinished()

    async def give_up(self, job: Job) -> JobFinished:
        """End the act: over the same batch three processes have died."""
        db = TeamDb(self.pool, job.team_id)
        await queries.end(db, job.subject_id, "failed", INTERNAL, self.clock.now())
        return JobFinished()

    async def collect(self) -> str:
        """Remove acts that ended long ago; say how many."""
        before = self.clock.now() - KEPT

        async def some() -> int:
            return await queries.remove_ended(self.pool, before, BATCH)

        return f"{await in_batches(some)} bulk acts"

    async def _batch(self, db: TeamDb, job: Job, running: RunningBulkAct) -> bool:
        """Change the next contacts, in one transaction; False at the end of the act."""
        chosen = await self._next(db, running)
        async with db.transaction() as inside:
            if not await job_queries.go_on(inside, job.id, job.attempt):
                return False
            if not await queries.hold(inside, running.id):
                return False
            if not chosen:
                await queries.end(inside, running.id, "completed", None, self.clock.now())
                return False
            changed = 0
            for contact in sorted(chosen, key=lambda one: one.address):
                changed_one = await self._change(inside, running, contact)
                if changed_one is None:
                    await queries.end(inside, running.id, "failed", SEGMENT_GONE, self.clock.now())
                    return False
                changed += changed_one
            await queries.advance(inside, running.id, chosen[-1].id, len(chosen), changed)
            await faults.point("bulk_act.batch_written")
        await faults.point("bulk_act.batch_committed")
        return True

    async def _next(self, db: TeamDb, running: RunningBulkAct) -> Sequence[ChosenContact]:
        """Return the next contacts of the act, in the order of their ids."""
        if running.contact_ids is not None:
            return await queries.chosen(db, running.contact_ids, running.position, BATCH)
        condition = None if running.conditions is None else stored_condition(running.conditions)
        contact_filter = ContactFilter(running.created_at, condition, running.search)
        found = await membership.following_fitting(db, contact_filter, running.position, BATCH)
        return [ChosenContact(one.id, one.email) for one in found]

    async def _change(self, db: TeamDb, running: RunningBulkAct, contact: ChosenContact) -> bool | None:
        """Change one contact; return whether that made a difference, None where the segment is gone."""
        segment_id = running.segment_id
        try:
            match running.kind:
                case "unsubscribe":
                    return await self.contacts.set_unsubscribed(db, contact.id, unsubscribed=True)
                case "delete":
                    await self.contacts.delete(db, contact.id)
                    return True
                case "remove_from_segment" if segment_id is not None:
                    return await self.contacts.remove_from_segment(db, contact.id, segment_id)
                case "add_to_segment" if segment_id is not None:
                    return await self.contacts.add_to_segments(db, contact.id, [segment_id])
        except NotFound as gone:
            if gone.message.startswith("Segment"):
                return None
        return False
