"""How long received mail is kept (receiving.md 5.6; DUR-15), and for how long repetitions are recognised.

A message goes with its attachments and its row, so many days after it came, unless an inbox has it
(docs/decisions/0091). Mails are gone through in the order of their ids, a few in each transaction; what
somebody has locked is looked at again the next time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import first_id
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.receiving import retention_queries as queries
from pillarbox.receiving.receive import REMEMBERED

BATCH: Final = 200
PAGE_SIZE: Final = 2000
"""Emails that are looked at together; inboxes may have most of them."""
NIL: Final = UUID(int=0)
FORGOTTEN_AT_ONCE: Final = 5000


class ReceivedRetention:
    """Removes received mail that is older than `days`; 0 is never."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, blobs: BlobStore, *, days: int) -> None:
        self._pool = pool
        self._clock = clock
        self._blobs = blobs
        self._days = days

    def periodic(self) -> list[Periodic]:
        """Return the hourly job that removes received mail and fingerprints that are over their time."""

        async def work() -> str:
            return f"{await self.purge()} received emails, {await self.forget()} fingerprints"

        async def settings() -> object:
            return self._days

        return [Periodic("receiving.retention", timedelta(hours=1), work, depends=settings)]

    async def purge(self) -> int:
        """Remove mail that is over its time; returns how many."""
        if not self._days:
            return 0
        end = first_id(self._clock.now() - timedelta(days=self._days))
        removed = 0
        for db in await queries.teams(self._pool):
            removed += await self._purge(db, end)
        return removed

    async def clear(self) -> int:
        """Remove all mail that is here now and in no inbox, and forget that it was: it may come again.
        Returns how many."""
        end = first_id(self._clock.now() + timedelta(seconds=1))
        removed = 0
        for db in await queries.teams(self._pool):
            removed += await self._purge(db, end)
            await queries.forget_team(db)
        return removed

    async def forget(self) -> int:
        """Forget what came longer ago than repetitions are recognised; returns how many."""
        before = self._clock.now() - REMEMBERED

        async def some() -> int:
            return await queries.forget_seen(self._pool, before, FORGOTTEN_AT_ONCE)

        return await in_batches(some)

    async def _purge(self, db: TeamDb, end: UUID) -> int:
        """Remove the team's received mail that is over its time; return how much. It rests as long as each
        batch took, so the database is at most half busy with it."""
        removed, after = 0, NIL
        while True:
            started = time.monotonic()
            page = await queries.page(db, after, end, PAGE_SIZE)
            free = [old.id for old in page if old.is_free]
            for at in range(0, len(free), BATCH):
                removed += await self._drop(db, free[at : at + BATCH])
            if len(page) < PAGE_SIZE:
                return removed
            after = page[-1].id
            await asyncio.sleep(time.monotonic() - started)

    async def _drop(self, db: TeamDb, row_ids: Sequence[UUID]) -> int:
        """Remove these emails, without those that somebody holds."""
        async with db.transaction() as held:
            gone = await queries.lock_free(held, row_ids)
            blobs = await queries.delete_sources(held, gone)
            await queries.delete_emails(held, gone)
        await blob_removal.remove(self._pool, self._blobs, blobs, "retention")
        return len(gone)
