"""Removes in the background what a deleted inbox, or a deleted label, has left behind (DUR-15).

Nobody sees it any more: its inbox does not exist. A few rows go at a time, each time in one transaction with
what follows from them, so a removal that is interrupted anywhere goes on with what is left. Sent and received
emails stay, and are kept from then on as long as any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.emails.inbox_mail import messages as inbox_mail
from pillarbox.inboxes import prometheus
from pillarbox.inboxes.inbox import removal_queries as queries
from pillarbox.inboxes.inbox.queries import JOB_REMOVE
from pillarbox.inboxes.labels.queries import JOB_REMOVE as JOB_REMOVE_LABEL
from pillarbox.inboxes.received_mail import ReceivedMailSource
from pillarbox.inboxes.search import block_queries as search_blocks
from pillarbox.inboxes.trust import queries as trust_queries
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.paging import OLDEST
from pillarbox.kernel.work.collectors import in_batches
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished, JobLimit

BATCH: Final = 500
DRAFTS: Final = 100
"""Drafts that are removed at a time: each may have attachments."""

LIMIT: Final = JobLimit((JOB_REMOVE, JOB_REMOVE_LABEL), running=2, batch=2, pause=0.1)
"""Of their own: however many large inboxes are deleted, other jobs run beside them."""


class InboxRemoval:
    """The jobs, and what they need."""

    def __init__(self, pool: asyncpg.Pool, blobs: BlobStore, received: ReceivedMailSource) -> None:
        self._pool = pool
        self._blobs = blobs
        self._received = received

    def handlers(self) -> Mapping[str, Handler]:
        return {JOB_REMOVE: self.remove, JOB_REMOVE_LABEL: self.remove_label}

    async def remove(self, job: Job) -> JobFinished:
        """Remove all that the inbox had. Messages go before their threads, so that each message has a
        thread."""
        db = TeamDb(self._pool, job.team_id)
        inbox_id = job.subject_id
        await in_batches(lambda: self._drafts(db, inbox_id))
        await self._messages(db, inbox_id)
        await in_batches(lambda: self._threads(db, inbox_id))
        await in_batches(lambda: _labels_and_agent(db, inbox_id))
        await in_batches(lambda: search_blocks.forget(db, inbox_id))
        return JobFinished()

    async def remove_label(self, job: Job) -> JobFinished:
        """Remove a label from all threads."""
        db = TeamDb(self._pool, job.team_id)
        await in_batches(lambda: queries.take_off(db, job.subject_id, BATCH))
        return JobFinished()

    async def _drafts(self, db: TeamDb, inbox_id: UUID) -> int:
        async with db.transaction() as inner:
            gone = await queries.drop_drafts(inner, inbox_id, DRAFTS)
            blobs = await queries.drop_files(inner, gone)
        await blob_removal.remove(self._pool, self._blobs, blobs, "inboxes")
        prometheus.REMOVED.add(len(gone), ("drafts",))
        return len(gone)

    async def _messages(self, db: TeamDb, inbox_id: UUID) -> None:
        """Remove the messages in the order of their ids, so that no statement reads past a million rows that
        are gone."""
        last = OLDEST

        async def some() -> int:
            nonlocal last
            async with db.transaction() as inner:
                gone = await queries.drop_messages(inner, inbox_id, last, BATCH)
                await trust_queries.drop(inner, inbox_id, gone)
                await inbox_mail.release(inner, inbox_id, gone)
                await self._received.release(inner, inbox_id, gone)
            last = max(gone, default=last)
            prometheus.REMOVED.add(len(gone), ("messages",))
            return len(gone)

        await in_batches(some)

    async def _threads(self, db: TeamDb, inbox_id: UUID) -> int:
        async with db.transaction() as inner:
            gone = await queries.drop_threads(inner, inbox_id, BATCH)
            await queries.drop_thread_labels(inner, gone)
        prometheus.REMOVED.add(len(gone), ("threads",))
        return len(gone)


async def _labels_and_agent(db: TeamDb, inbox_id: UUID) -> int:
    async with db.transaction() as inner:
        await queries.drop_awaited(inner, inbox_id)
        await queries.drop_policy(inner, inbox_id)
        return await queries.drop_labels(inner, inbox_id) + await queries.drop_agent(inner, inbox_id)
