"""Attachments given by `path`: fetched after the answer, before the mail may leave (emails.md 1.4).

Three tries in two minutes; then the email ends `failed` with the reason `attachment_download_failed`.
What is fetched counts towards the 40 MB that the attachments of an email may have together.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import asyncpg

from pillarbox.delivery.queue import email_work
from pillarbox.emails import work_queries as queries
from pillarbox.emails.requests.attachment_input import MOST_BASE64, encoded_length
from pillarbox.emails.rows import JOB_FETCH
from pillarbox.emails.work_queries import FetchedFile, FileToFetch
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.network.fetch_result import FetchError, HttpLimits
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.work.fair_turns import Turns
from pillarbox.kernel.work.jobs import Job, JobFinished, JobLimit, JobPostponed
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import EventDetail, EventKind, TimelineEntry

GAPS = (timedelta(seconds=30), timedelta(seconds=60))
"""The waits after the first and the second failed try; there is no fourth."""

JOB_LIMIT = JobLimit(
    (JOB_FETCH,),
    running=16,
    batch=8,
    pause=0.25,
    turns=Turns(slot_timeout=10.0, gap=timedelta(seconds=30), tries=len(GAPS)),
)
"""Emails whose files one process fetches at once; each may have 30 MB of them in memory."""

LIMITS = HttpLimits(max_bytes=30 * 1024 * 1024, connect=10.0, total=30.0, redirects=5)
INLINE = 256 * 1024
DIED = "Three processes ended while they fetched it."


class AttachmentFetcher:
    """The handler of job kind `email.attachments`; its subject is the email."""

    def __init__(
        self, pool: asyncpg.Pool, clock: Clock, outbound: Outbound, blobs: BlobStore, timeline: Timeline
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._outbound = outbound
        self._blobs = blobs
        self._timeline = timeline

    async def run(self, job: Job) -> JobFinished | JobPostponed:
        db = TeamDb(self._pool, job.team_id)
        try:
            fetched = await self._fetch_all(db, job.subject_id)
        except FetchError as failure:
            reason = str(failure)
            if job.tries < len(GAPS):
                return JobPostponed(self._clock.now() + GAPS[job.tries], reason)
            return JobFinished(lambda conn: self._give_up(conn, job, reason))
        return JobFinished(lambda conn: self._release(conn, job, fetched))

    async def give_up(self, job: Job) -> JobFinished:
        """Let the email fail: three processes have died while they fetched its files."""
        return JobFinished(lambda conn: self._give_up(conn, job, DIED))

    async def _fetch_all(self, db: TeamDb, email_id: UUID) -> list[FetchedFile]:
        left = MOST_BASE64 - sum(map(encoded_length, await queries.sizes(db, email_id)))
        fetched = []
        for wanted in await queries.files_to_fetch(db, email_id):
            found = await self._fetch(wanted)
            left -= encoded_length(found.size)
            if left < 0:
                raise FetchError("too_large", "The attachments have more than 40 MB after base64 encoding.")
            fetched.append(found)
        return fetched

    async def _fetch(self, file_to_fetch: FileToFetch) -> FetchedFile:
        answer = await self._outbound.fetch("GET", file_to_fetch.url, LIMITS)
        if not 200 <= answer.status < 300:
            raise FetchError("status", f"The server answered {answer.status}.")
        if len(answer.body) <= INLINE:
            return FetchedFile(file_to_fetch.id, len(answer.body), answer.body, None)
        blob = f"attachments/{file_to_fetch.id}"
        await self._blobs.put(blob, answer.body)
        return FetchedFile(file_to_fetch.id, len(answer.body), None, blob)

    async def _release(self, conn: Connection, job: Job, fetched: Sequence[FetchedFile]) -> None:
        db = TeamDb(conn, job.team_id)
        await email_work.lock(db, job.subject_id)
        for row in fetched:
            await queries.store(db, row)
        now = self._clock.now()
        scheduled = await queries.scheduled_at(db, job.subject_id)
        await email_work.release_fetched(db, job.subject_id, max(scheduled, now) if scheduled else now)

    async def _give_up(self, conn: Connection, job: Job, reason: str) -> None:
        db = TeamDb(conn, job.team_id)
        await email_work.lock(db, job.subject_id)
        await email_work.drop(db, job.subject_id)
        detail = EventDetail(reason="attachment_download_failed", reply=reason)
        now = self._clock.now()
        positions = await queries.open_positions(db, job.subject_id)
        await self._timeline.record(
            conn,
            [
                TimelineEntry(
                    team_id=job.team_id,
                    email_id=job.subject_id,
                    position=at,
                    kind=EventKind.FAILED,
                    at=now,
                    detail=detail,
                )
                for at in positions
            ],
        )
