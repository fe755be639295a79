"""How long emails and their bodies are kept (DUR-15).

An email goes with its recipients, history, content, attachments and their blobs, so many days after its
last event; its html, text and attachments may go before that, and then the rest of it stays. An email with
live work (a delivery, an attachment that is still fetched) is never touched, nor one that is a message of an
inbox (docs/decisions/0091). Metrics keep their counts.
Content that a broadcast shares belongs to the broadcast and stays with it.

Emails are gone through in the order of their ids, a few in each transaction, and none is waited for: what
somebody has locked is read again by the next run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import asyncpg

from pillarbox.emails import retention_queries as queries
from pillarbox.emails.rows import JOB_FETCH
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import EPOCH, MICROSECOND, uuid7
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.timeline import history
from pillarbox.timeline.batch import quarter

BATCH = 200
GRACE = timedelta(minutes=10)
"""Kept a little longer than asked for: an answer that is kept for 24 hours never outlives its email."""

LATE_EVENTS = timedelta(hours=1)
"""An event that does not show as the last one may be later than it, by less than this."""

NIL = UUID(int=0)
NEW = -1
TURN = 10.0
"""Seconds that the emails of one team are removed before those of the next one."""


class EmailRetention:
    """Removes emails that are old enough. `emails` and `bodies` say after how many days; 0 is never. A team
    may have a number of its own for its emails."""

    def __init__(
        self, pool: asyncpg.Pool, clock: Clock, blobs: BlobStore, *, emails: int, bodies: int
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._blobs = blobs
        self._emails = emails
        self._bodies = bodies
        self._emptied: dict[UUID, UUID] = {}

    async def settings(self) -> object:
        """Return the days after which data is removed, and those of the teams that have a number of
        their own."""
        own = {db.team_id: days for db, days in await queries.teams(self._pool) if days is not None}
        return self._emails, self._bodies, own

    async def purge_emails(self) -> int:
        """Remove emails that are over their time; return how many. Teams take turns; a retention that is
        changed meanwhile counts from the team's next turn on."""
        removed = 0
        known: dict[UUID, int | None] = {}
        places: dict[UUID, UUID] = {}
        while True:
            teams = await queries.teams(self._pool)
            places |= {db.team_id: NIL for db, own in teams if known.get(db.team_id, NEW) != own}
            known = {db.team_id: own for db, own in teams}
            waiting = [(db, own) for db, own in teams if db.team_id in places]
            if not waiting:
                return removed
            for db, own in waiting:
                after = places.pop(db.team_id)
                gone, left = await self._purge_some(db, self._emails if own is None else own, after)
                removed += gone
                if left is not None:
                    places[db.team_id] = left

    async def _purge_some(self, db: TeamDb, days: int, after: UUID) -> tuple[int, UUID | None]:
        """Remove emails of a team for as long as its turn is; returns how many, and where the next turn
        begins, None where nothing is left."""
        removed = 0
        if not days:
            return removed, None
        before, until = self._limit(days), time.monotonic() + TURN
        async for page in _pages(partial(queries.old, db), after, before):
            removed += await self._drop(db, page, before)
            if time.monotonic() > until:
                return removed, page[-1]
        return removed, None

    async def purge_bodies(self) -> int:
        """Remove bodies and attachments that are over their time; returns of how many emails."""
        emptied = 0
        if self._bodies:
            before = self._limit(self._bodies)
            for db, _ in await queries.teams(self._pool):
                emptied += await self._empty_all(db, before)
        return emptied

    def _limit(self, days: int) -> datetime:
        return self._clock.now() - timedelta(days=days) - GRACE

    async def _drop(self, db: TeamDb, page: Sequence[UUID], before: datetime) -> int:
        async with db.transaction() as held:
            gone = await queries.lock_finished(held, page, before, JOB_FETCH)
            if not gone:
                return 0
            await history.remove(held, gone)
            blobs = await queries.delete_attachments(held, gone)
            await queries.delete_emails(held, gone)
            reconciled = quarter(before + LATE_EVENTS)
            await queries.note_purge(held, reconciled, first_id(reconciled))
        await blob_removal.remove(self._pool, self._blobs, blobs, "retention")
        return len(gone)

    async def _empty_all(self, db: TeamDb, before: datetime) -> int:
        """Empty old emails from where this process knows that all before is done, so that an hourly run
        is short."""
        emptied = 0
        done_to = first_id(before)
        after = self._emptied.get(db.team_id, NIL)
        async for page in _pages(partial(queries.old_with_body, db), after, before):
            done = set(await self._empty(db, page, before))
            emptied += len(done)
            done_to = min([done_to, *(found for found in page if found not in done)])
        self._emptied[db.team_id] = UUID(int=done_to.int - 1)
        return emptied

    async def _empty(self, db: TeamDb, page: Sequence[UUID], before: datetime) -> Sequence[UUID]:
        async with db.transaction() as held:
            finished = await queries.lock_finished(held, page, before, JOB_FETCH)
            blobs = await queries.delete_attachments(held, finished)
            await queries.empty_contents(held, finished)
        await blob_removal.remove(self._pool, self._blobs, blobs, "retention")
        return finished


async def _pages(
    page_behind: Callable[[UUID, UUID, int], Awaitable[Sequence[UUID]]], after: UUID, before: datetime
) -> AsyncIterator[Sequence[UUID]]:
    """Yield the emails of a team up to an instant, some at a time. Rests as long as each page took, so that
    the database is at most half busy with it."""
    end = first_id(before)
    while True:
        started = time.monotonic()
        page = await page_behind(after, end, BATCH)
        if not page:
            return
        yield page
        after = page[-1]
        await asyncio.sleep(time.monotonic() - started)


def first_id(instant: datetime) -> UUID:
    """Return the least id that can be made at that instant."""
    return uuid7(max(0, (instant - EPOCH) // MICROSECOND), bytes(8))
