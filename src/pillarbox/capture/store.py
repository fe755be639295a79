"""Storing captured mail in the transaction that settles its delivery, so every `delivered` mail can be read.

A background task removes what is beyond the limit, and blobs without a row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.capture import queries
from pillarbox.capture.arrivals import Arrivals
from pillarbox.delivery.reports import AttemptSettlement, Report
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.mail.message.address import Mailbox

INLINE = 256 * 1024
"""Larger mails go to the blob store (architecture 2.7)."""

TRIM_EVERY = 3.0
DROPPED_AT_ONCE = 500
BLOBS_AT_ONCE = 8


@dataclass(slots=True)
class _Mail:
    """One email of a batch, with the recipients of all its groups in the batch."""

    team_id: UUID
    email_id: UUID
    mail_from: str
    sender: str
    subject: str
    raw: bytes
    recipients: dict[str, None]
    is_sealed: bool

    @property
    def recipients_json(self) -> str:
        return msgspec.json.encode(list(self.recipients)).decode()


class Capture:
    """Stores mail on this machine that is not sent."""

    def __init__(
        self, pool: asyncpg.Pool, clock: Clock, ids: Ids, blobs: BlobStore, limit_bytes: int, ring: KeyRing
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._ids = ids
        self._blobs = blobs
        self._limit = limit_bytes
        self._ring = ring
        self._unreferenced_blobs: list[str] = []
        self._needs_cleaning = asyncio.Event()
        self._cleaning_task: asyncio.Task[None] | None = None
        self.arrivals = Arrivals(pool, clock)

    async def start(self) -> None:
        """Remove old mail in the background from now on."""
        self._needs_cleaning.set()
        self._cleaning_task = asyncio.create_task(self._clean_up())

    async def stop(self) -> None:
        """Answer whoever waits for a mail and end the background work."""
        self.arrivals.close()
        if self._cleaning_task is not None:
            self._cleaning_task.cancel()
            await asyncio.gather(self._cleaning_task, return_exceptions=True)

    async def keep(self, conn: Connection, settlements: Sequence[AttemptSettlement]) -> None:
        """Store the messages of these settlements in their transaction, one row per email.

        Recipients of a further group are added to the email's row. A message over 256 KiB is in the blob
        store, durably, before its row is written, unless it is sealed: then it is in its row.
        """
        mails = _by_email(settlements)
        large = [mail for mail in mails if len(mail.raw) > INLINE]
        if large:
            rows = [(mail.team_id, mail.email_id, mail.recipients_json) for mail in large]
            known = await queries.add_recipients(conn, rows)
            mails = [mail for mail in mails if (mail.team_id, mail.email_id) not in known]
        await self._insert(conn, mails)
        for settlement in settlements:
            if settlement.report is not None:
                settlement.report.on_settled = self._after_commit(settlement.report)

    async def trim(self) -> int:
        """Remove the oldest mails beyond the limit; returns how many."""
        removed = 0
        while True:
            gone = await queries.drop_oldest(self._pool, self._limit, DROPPED_AT_ONCE)
            await blob_removal.remove(self._pool, self._blobs, gone, "capture")
            removed += len(gone)
            if len(gone) < DROPPED_AT_ONCE:
                return removed

    async def clear(self) -> int:
        """Remove every mail that is here now; returns how many."""
        newest = await queries.newest(self._pool)
        removed = 0
        while newest is not None:
            gone = await queries.clear(self._pool, newest, DROPPED_AT_ONCE)
            await blob_removal.remove(self._pool, self._blobs, gone, "capture")
            removed += len(gone)
            if len(gone) < DROPPED_AT_ONCE:
                break
        return removed

    async def _insert(self, conn: Connection, mails: Sequence[_Mail]) -> None:
        if not mails:
            return
        stamps = [self._ids.stamp() for _ in mails]
        blobs = [
            f"captured/{stamp.id}" if len(mail.raw) > INLINE and not mail.is_sealed else None
            for mail, stamp in zip(mails, stamps, strict=True)
        ]
        await self._put(mails, blobs)
        rows = [
            (
                mail.team_id,
                stamp.id,
                mail.email_id,
                stamp.at,
                mail.mail_from,
                mail.recipients_json,
                mail.sender,
                mail.subject,
                len(mail.raw),
                None if blob else self._stored(mail, stamp.id),
                blob,
                mail.is_sealed,
            )
            for mail, stamp, blob in zip(mails, stamps, blobs, strict=True)
        ]
        counted = await queries.insert(conn, rows)
        self._unreferenced_blobs += [
            blob for stamp, blob in zip(stamps, blobs, strict=True) if blob and stamp.id not in counted
        ]

    def _stored(self, mail: _Mail, row_id: UUID) -> bytes:
        """Return the message as its row has it: what has links for one person alone is sealed."""
        return self._ring.seal(mail.raw, queries.CAPTURED.context(row_id)) if mail.is_sealed else mail.raw

    async def _put(self, mails: Sequence[_Mail], blobs: Sequence[str | None]) -> None:
        """Store the content of each mail under its key of `blobs`, a few at a time; None: it stays in its
        row."""
        room = asyncio.Semaphore(BLOBS_AT_ONCE)

        async def put(key: str, raw: bytes) -> None:
            async with room:
                await self._blobs.put(key, raw)

        async with asyncio.TaskGroup() as group:
            for mail, key in zip(mails, blobs, strict=True):
                if key is not None:
                    group.create_task(put(key, mail.raw))

    def _after_commit(self, report: Report) -> Callable[[], None]:
        before = report.on_settled

        def after() -> None:
            if before is not None:
                before()
            self.arrivals.announce()
            self._needs_cleaning.set()

        return after

    async def _clean_up(self) -> None:
        failures = LoopFailures("capture.clean_up")
        while True:
            await self._needs_cleaning.wait()
            self._needs_cleaning.clear()
            await failures.attempt(self._clean_up_once())
            await self._clock.sleep(max(TRIM_EVERY, failures.pause))

    async def _clean_up_once(self) -> None:
        unwanted, self._unreferenced_blobs = self._unreferenced_blobs, []
        await blob_removal.remove(self._pool, self._blobs, unwanted, "capture")
        await self.trim()


def _by_email(settlements: Sequence[AttemptSettlement]) -> list[_Mail]:
    mails: dict[tuple[UUID, UUID], _Mail] = {}
    for settlement in settlements:
        item, report = settlement.item, settlement.report
        if report is None or report.captured is None:
            continue
        key = (item.team_id, item.email_id)
        mail = mails.get(key)
        if mail is None:
            mail = mails[key] = _Mail(
                *key,
                mail_from=report.mail_from,
                sender=shown(item.email.sender),
                subject=item.email.subject,
                raw=report.captured,
                recipients={},
                is_sealed=item.email.sealed is not None,
            )
        mail.recipients.update(dict.fromkeys(target.mailbox for target in item.targets))
    return list(mails.values())


def shown(mailbox: Mailbox) -> str:
    """Return a mailbox as people read it."""
    return f"{mailbox.display} <{mailbox.addr_spec}>" if mailbox.display else mailbox.addr_spec
