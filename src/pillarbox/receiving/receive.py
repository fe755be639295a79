"""Receiving a message: it is parsed, authenticated and stored with its event, and only then answered with
250.

The transaction is shared with other messages that come at the same time (architecture 2.6). Where anything
fails nothing is stored and the sender gets a temporary failure; a message that was stored although its sender
never got the 250 is recognised when it comes again (contract decision 27).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

import asyncpg

from pillarbox.inboxes.locking import InboxKey, LockTimeout
from pillarbox.inboxes.trust import hidden_words
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.combined_statement import Statement
from pillarbox.kernel.postgres.commit_window import CommitWindow, ExpectedMessage
from pillarbox.kernel.postgres.database import GONE, Connection, Source, problem_of, transaction
from pillarbox.kernel.postgres.group_commit import GroupCommit
from pillarbox.kernel.postgres.time_limit import TimeLimit
from pillarbox.kernel.process import faults
from pillarbox.kernel.process.byte_budget import ByteBudget
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobFailed, BlobStore
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.kernel.wire.problems import DatabaseGone, ServerOverloaded
from pillarbox.mail.authentication import results_header
from pillarbox.mail.message import parse
from pillarbox.mail.message.loop_marks import LoopMarks
from pillarbox.mail.message.parse import ParsedMessage
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.receiving import store_queries, trace
from pillarbox.receiving.arrival import Arrival, ArrivalFate, ArrivalOutcome
from pillarbox.receiving.arrivals.inbox_commits import ForInbox, InboxCommitResult, InboxCommits, SeenBefore
from pillarbox.receiving.arrivals.inbox_queues import InboxCommit, InboxQueues
from pillarbox.receiving.arrivals.message_fields import MessageFields
from pillarbox.receiving.judging import Judge, MailJudgement
from pillarbox.receiving.rows import PreparedReceipt, ReceiptBuilder
from pillarbox.receiving.store_queries import WrittenRow
from pillarbox.usage import counting
from pillarbox.usage.counting import CountedArrival
from pillarbox.webhooks.publish import Publisher

log = get("receiving")

T = TypeVar("T")

MOST_OCTETS: Final = 40 * 1024 * 1024
"""The largest message that comes in."""
MOST_HOPS: Final = 50
MOST_TOGETHER: Final = 200
"""Messages of one commit."""
COMMIT_SECONDS: Final = 7.0
"""How long a commit may take before its connection is given up."""
REMEMBERED: Final = timedelta(hours=24)

IN_PLACE: Final = 64 * 1024
HEAD_IN_PLACE: Final = 16 * 1024
"""Larger messages are read in a thread, and those with a longer header, each octet of which may cost more."""
LARGE: Final = 512 * 1024
EXEMPT: Final = ("postmaster@", "abuse@")
"""Mail to these is never refused for what it is (SMTP-16)."""


@dataclass(frozen=True, slots=True)
class ReceivingRules:
    """The operator's settings. `most_small` octets of small messages may be in work at once; beyond it they
    get a temporary failure. Large ones wait until they fit into `most_large`."""

    hostname: str
    reject_dmarc_fail: bool = False
    most_small: int = 64 * 1024 * 1024
    most_large: int = 96 * 1024 * 1024


class IncomingMessage(NamedTuple):
    """A message that is being taken; `is_light` where it is read fast enough for the event loop."""

    message: ParsedMessage
    arrival: Arrival
    judgement: MailJudgement
    is_light: bool


class StoredArrival(NamedTuple):
    """The ids of the emails that were stored for a message, and its receipts for inboxes, which are not
    stored yet."""

    ids: tuple[UUID, ...]
    for_inboxes: list[PreparedReceipt]


class MessageReceiver:
    """Takes messages for addresses that were accepted. `announce` is called when some were stored."""

    def __init__(
        self,
        *,
        pool: asyncpg.Pool,
        clock: Clock,
        ids: Ids,
        blobs: BlobStore,
        room: DiskSpace,
        publisher: Publisher,
        judge: Judge,
        marks: LoopMarks,
        threads: Executor,
        rules: ReceivingRules,
        announce: Callable[[], None] | None = None,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._ids = ids
        self._blobs = blobs
        self._room = room
        self._publisher = publisher
        self._judge = judge
        self._marks = marks
        self._threads = threads
        self._rules = rules
        self._announce = announce
        self._metered: set[UUID] = set()
        """Teams of the last commit that have a quota: nothing is tried without them."""
        self._commit_window = CommitWindow()
        self._small = 0
        self._large = ByteBudget(rules.most_large)
        self._inboxes = InboxCommits(ids, publisher)
        self._commits: GroupCommit[list[PreparedReceipt], StoredArrival] = GroupCommit(
            self._flush,
            kind="receive",
            flushers=1,
            most_items=MOST_TOGETHER,
            weigh=lambda drafts: sum([draft.weight for draft in drafts]),
            most_waiting=rules.most_small,
            shared=(DatabaseGone, asyncpg.InsufficientResourcesError),
        )
        # Apart, so that mail for no inbox never waits for the lock of one.
        self._inbox_queues = InboxQueues(self._write_for_inboxes, most_waiting=rules.most_small)

    @property
    def refusal(self) -> ArrivalFate | None:
        """Why no message would be taken right now, if so."""
        if self._room.is_short:
            return ArrivalFate.NO_ROOM
        return ArrivalFate.BUSY if self._small > self._rules.most_small else None

    def expect(self) -> ExpectedMessage:
        """Register a message that is about to come; others wait a moment to share a commit with it."""
        return self._commit_window.expect()

    async def take(
        self, arrival: Arrival, content: ReceivedText, expected: ExpectedMessage | None = None
    ) -> ArrivalOutcome:
        """Store the message and return when it is stored, or say why not. The caller closes the content."""
        try:
            return await self._take_within_budget(arrival, content, expected)
        finally:
            if expected is not None:
                expected.gone()

    async def _take_within_budget(
        self, arrival: Arrival, content: ReceivedText, expected: ExpectedMessage | None
    ) -> ArrivalOutcome:
        refusal = self.refusal
        if refusal is not None:
            return ArrivalOutcome(refusal)
        try:
            if content.size > LARGE:
                async with self._large.of(content.size):
                    return await self._take(arrival, await self._in_thread(content.read), expected)
            self._small += content.size
            try:
                return await self._take(arrival, content.read(), expected)
            finally:
                self._small -= content.size
        except (DatabaseGone, BlobFailed, asyncpg.LockNotAvailableError) as trouble:
            log.warning("receiving.not_stored", trouble=type(trouble).__name__)
        except ServerOverloaded:
            return ArrivalOutcome(ArrivalFate.BUSY)
        except Exception:
            log.exception("receiving.failed", octets=content.size)
        return ArrivalOutcome(ArrivalFate.TROUBLE)

    async def drain(self) -> None:
        """Return when nothing is being committed."""
        await self._commits.drain()
        await self._inbox_queues.drain()

    async def _take(self, arrival: Arrival, raw: bytes, expected: ExpectedMessage | None) -> ArrivalOutcome:
        is_light = _is_light(raw)
        if is_light:
            read, fingerprint = self._read(raw), _fingerprint(raw, arrival)
        else:
            read, fingerprint = await self._in_thread(lambda: (self._read(raw), _fingerprint(raw, arrival)))
        if len(read.named.get("received", ())) > MOST_HOPS:
            return ArrivalOutcome(ArrivalFate.LOOPING)
        if self._marks.is_loop([recipient.address for recipient in arrival.recipients], read.headers):
            return ArrivalOutcome(ArrivalFate.LOOPING)
        judgement = await self._judge.judge(arrival, read, fingerprint.hex()[:16])
        if judgement.is_forged and self._rules.reject_dmarc_fail and not _is_exempt(arrival):
            return ArrivalOutcome(ArrivalFate.FORGED)
        hostname = self._rules.hostname
        if is_light:
            builder = ReceiptBuilder(read, arrival, judgement, fingerprint, hostname)
        else:
            builder = await self._in_thread(
                lambda: ReceiptBuilder(read, arrival, judgement, fingerprint, hostname)
            )
        drafts = []
        for team_id, recipients in _by_team(arrival).items():
            stamp = self._ids.stamp()
            fields = trace.fields(
                arrival,
                recipients,
                stamp.id,
                stamp.at,
                hostname,
                judgement.field,
                self._marks.comment(recipients),
                read.raw[:1],
            )
            drafts.append(builder.draft(team_id, recipients, stamp, fields, self._ids.new))
        if expected is not None:
            expected.gone()
        return await self._store(drafts, IncomingMessage(read, arrival, judgement, is_light))

    def _read(self, raw: bytes) -> ParsedMessage:
        """Return the message, without the results that it claims are ours (AR-01)."""
        # Looked for in the bytes: not every field of a malformed header or of a very long one is read.
        return parse.parse(results_header.without_forged(raw, self._rules.hostname))

    async def _store(self, drafts: list[PreparedReceipt], received: IncomingMessage) -> ArrivalOutcome:
        blobs = {draft.row.id: draft.row.blob for draft in drafts if draft.row.blob is not None}
        for blob in blobs.values():
            await self._blobs.put(blob, received.message.raw)
        await self._commit_window.wait()
        with TimeLimit():
            ids = await self._commit(drafts, received)
        # It is committed: the answer is 250, whatever fails from here.
        if blobs and len(ids) < len(drafts):
            await blob_removal.delete(
                self._blobs, [blob for email, blob in blobs.items() if email not in ids], "receiving"
            )
        return ArrivalOutcome(ArrivalFate.STORED if ids else ArrivalFate.REPEATED, ids)

    async def _commit(self, drafts: list[PreparedReceipt], received: IncomingMessage) -> tuple[UUID, ...]:
        """Store what teams get of a message, for their inboxes or for none; returns what was stored now."""
        known = self._inboxes.known
        if any(known.has_one_of(draft.row.candidates) for draft in drafts):
            return await self._commit_for_inboxes(drafts, received)
        ids, for_inboxes = await self._commits.submit(drafts)
        return ids + await self._commit_for_inboxes(for_inboxes, received) if for_inboxes else ids

    async def _commit_for_inboxes(
        self, drafts: list[PreparedReceipt], received: IncomingMessage
    ) -> tuple[UUID, ...]:
        message, arrival, judgement, is_light = received

        def read() -> MessageFields:
            return MessageFields.of(message, arrival, judgement.verdicts(automatic=False))

        is_costly = not is_light or hidden_words.is_costly(message.html, message.text)
        fields = await self._in_thread(read) if is_costly else read()
        return await self._inbox_queues.submit([ForInbox(draft, fields) for draft in drafts])

    async def _flush(self, batch: Sequence[list[PreparedReceipt]]) -> Sequence[StoredArrival]:
        written = await self._limited(self._write([draft for drafts in batch for draft in drafts]))
        await self._tell(written)
        stored = {row.id for row in written if row.is_stored}
        for_inboxes = {row.id for row in written if row.has_inbox}
        # Every repetition in this batch of what is not stored yet has to wait for it.
        keys = {draft.key for drafts in batch for draft in drafts if draft.row.id in for_inboxes}
        return [
            StoredArrival(
                tuple([d.row.id for d in drafts if d.row.id in stored]), [d for d in drafts if d.key in keys]
            )
            for drafts in batch
        ]

    async def _limited(self, writing: Awaitable[T]) -> T:
        """Return the result of a commit; raise a temporary problem where it takes too long or the database is
        gone."""
        try:
            with TimeLimit(COMMIT_SECONDS):
                return await writing
        except GONE as gone:
            # What was committed all the same is recognised when its sender tries again.
            raise problem_of(gone) from gone

    async def _tell(self, written: Sequence[WrittenRow]) -> None:
        """Tell those who wait for what is committed now."""
        if any(row.has_event for row in written):
            self._publisher.wake()
        if any(row.is_stored for row in written):
            if self._announce is not None:
                self._announce()
            await faults.point("receive.after_commit")

    async def _write(self, drafts: Sequence[PreparedReceipt]) -> list[WrittenRow]:
        """Store those that are neither repetitions nor for an inbox, with all that follows from them."""
        mails = _first_of_each(drafts)
        if self._metered.isdisjoint([draft.row.team_id for draft in mails]):
            await faults.point("receive.before_commit")
            written = await self._store_rows(self._pool, mails, metered=False)
            if all(row.is_stored or row.has_inbox for row in written):
                return written
        async with transaction(self._pool) as conn:
            written = await self._store_of_any_team(conn, mails)
            await faults.point("receive.before_commit")
        return written

    async def _write_for_inboxes(
        self, batch: InboxCommit, waited: InboxKey | LockTimeout | None
    ) -> InboxCommitResult:
        """Commit mail of inboxes with its messages and threads."""
        try:
            done = await self._limited(self._written_for_inboxes(batch, waited, is_checked=False))
        except SeenBefore:
            done = await self._limited(self._written_for_inboxes(batch, waited, is_checked=True))
        await self._tell(done.rows)
        return done

    async def _written_for_inboxes(
        self, batch: InboxCommit, waited: InboxKey | LockTimeout | None, *, is_checked: bool
    ) -> InboxCommitResult:
        now = self._clock.now()
        expired = now - REMEMBERED if is_checked else None
        async with transaction(self._pool) as conn:
            done = await self._inboxes.write(conn, batch, now, self._store_of_any_team, waited, expired)
            await faults.point("receive.before_commit")
        return done

    async def _store_of_any_team(
        self, conn: Connection, mails: Sequence[PreparedReceipt], beside: Sequence[Statement] = ()
    ) -> list[WrittenRow]:
        """Store rows of teams with and without quotas; mark what is above a quota. Mail for inboxes always
        comes here."""
        written = await self._store_rows(conn, mails, metered=True, beside=beside)
        metered = {row.id for row in written if row.is_metered and row.is_stored}
        rows = [draft.row for draft in mails if draft.row.id in metered]
        if rows:
            await counting.mark_above(
                conn, [CountedArrival(row.team_id, row.id, row.created_at) for row in rows]
            )
        self._metered = {row.team_id for row in rows}
        return written

    async def _store_rows(
        self,
        source: Source,
        mails: Sequence[PreparedReceipt],
        *,
        metered: bool,
        beside: Sequence[Statement] = (),
    ) -> list[WrittenRow]:
        now = self._clock.now()
        rows = [(draft.row, draft.octets) for draft in mails]
        return await store_queries.store(source, rows, now, now - REMEMBERED, metered=metered, beside=beside)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _first_of_each(drafts: Sequence[PreparedReceipt]) -> list[PreparedReceipt]:
    """Return each message once for each team."""
    return list({draft.key: draft for draft in reversed(drafts)}.values())[::-1]


def _is_light(raw: bytes) -> bool:
    """Return whether a message parses fast enough for the event loop."""
    if len(raw) <= HEAD_IN_PLACE:
        return True
    return len(raw) <= IN_PLACE and raw.find(b"\r\n\r\n", 0, HEAD_IN_PLACE) >= 0


def _fingerprint(raw: bytes, arrival: Arrival) -> bytes:
    """Return the hash by which repetitions of a message are found: of its octets and its recipients (contract
    decision 27). The Message-ID is among the octets."""
    digest = sha256(raw)
    for address in sorted({recipient.address for recipient in arrival.recipients}):
        digest.update(b"\0" + address.encode("utf-8", "replace"))
    return digest.digest()


def _by_team(arrival: Arrival) -> dict[UUID, list[str]]:
    """Return the recipients of each team, each once, in the order of the session (receiving.md 5.3)."""
    teams: dict[UUID, list[str]] = {}
    for recipient in arrival.recipients:
        addresses = teams.setdefault(recipient.team_id, [])
        if recipient.address not in addresses:
            addresses.append(recipient.address)
    return teams


def _is_exempt(arrival: Arrival) -> bool:
    """Return whether a mail is never refused for its content. Without a client half of DMARC is unknown, and
    a server in front of us would turn a refusal into a bounce."""
    if not arrival.client:
        return True
    return any(recipient.address.lower().startswith(EXEMPT) for recipient in arrival.recipients)
