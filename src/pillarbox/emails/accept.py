"""The one door for outgoing mail (design 2.8).

`check` asks what only the database knows (may this sender write as this address?); `store` commits
emails with their recipients, work items, timeline, idempotent answer and log row in one group commit, and
hands the work to this process's engine when the commit returns. Teams with a quota have a group commit of
their own, because theirs waits for its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.delivery.claims import LEASE, Claims
from pillarbox.delivery.engine import Engine
from pillarbox.domains.senders import SenderDomain, Senders
from pillarbox.emails import figures, queries
from pillarbox.emails.outgoing import Outgoing
from pillarbox.emails.rows import JOB_FETCH, Draft, Origins, Rows, drafted, hand_over
from pillarbox.kernel import faults
from pillarbox.kernel.auth import Caller
from pillarbox.kernel.blobs import BlobStore
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.db import GONE, Connection, TeamDb, transaction
from pillarbox.kernel.group_commit import GroupCommit
from pillarbox.kernel.idempotency import LIFETIME, AlreadyAnswered, Idempotency
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.journal import Answered, Asked, Content, Journal
from pillarbox.kernel.log import get
from pillarbox.kernel.problems import (
    ConcurrentIdempotentRequest,
    DatabaseGone,
    Forbidden,
    InvalidField,
    NotFound,
)
from pillarbox.kernel.room import Room
from pillarbox.mail.address import Mailbox
from pillarbox.timeline.record import Timeline
from pillarbox.usage.quotas import Quotas, Spending

log = get("accept")

INLINE = 256 * 1024
"""Attachments up to this size go into the commit; larger ones are blobs, synced before it."""

RESERVED_TEST_DOMAINS = frozenset({"example.com", "example.net", "example.org", "test.com"})
SHOWN = 100
"""At most so much of a request's own text stands in a message (conventions section 5)."""
LOOK_UP_TRIES = 20
LOOK_UP_PAUSE = 0.25


class DomainNotVerified(Forbidden):
    def __init__(self, domain: str) -> None:
        super().__init__(f"The {domain[:SHOWN]} domain is not verified. Add and verify it, then try again.")


class KeyOfAnotherDomain(Forbidden):
    def __init__(self, domain: str) -> None:
        super().__init__(f"This API key is not authorized to send emails from {domain[:SHOWN]}.")


class SandboxOnly(Forbidden):
    def __init__(self, domain: str) -> None:
        super().__init__(
            f"Emails from {domain} are for testing: they may only go to simulator addresses and to the "
            "addresses of your own team. To send to other recipients, verify a domain."
        )


@dataclass(frozen=True, slots=True)
class Rules:
    """The operator's settings that decide who may send."""

    simulator_domains: frozenset[str]
    domain_required: bool
    refuse_reserved: bool = False


class Checked(NamedTuple):
    """An email that its sender may send, with the domain that signs it."""

    outgoing: Outgoing
    domain: SenderDomain | None


@dataclass(slots=True)
class _Acceptance:
    """One caller's share of a group commit."""

    caller: Caller
    drafts: list[Draft]
    idempotency: Idempotency | None
    answer: bytes
    status: int
    weight: int
    asked: Asked | None


class Accept:
    """Checks and stores outgoing mail."""

    def __init__(
        self,
        *,
        pool: asyncpg.Pool,
        clock: Clock,
        ids: Ids,
        timeline: Timeline,
        senders: Senders,
        blobs: BlobStore,
        room: Room,
        rules: Rules,
        quotas: Quotas,
        journal: Journal,
        owner: UUID,
        engine: Engine | None,
        claims: Claims,
        wake: Callable[[], None],
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._ids = ids
        self._timeline = timeline
        self._senders = senders
        self._blobs = blobs
        self._room = room
        self._rules = rules
        self._quotas = quotas
        self._journal = journal
        self._owner = owner
        self._engine = engine
        self._claims = claims
        self._wake = wake
        self._commits = self._group("accept")
        self._metered = self._group("accept metered")

    def _group(self, kind: str) -> GroupCommit[_Acceptance, None]:
        return GroupCommit(
            self._flush,
            kind=kind,
            flushers=1,
            weigh=lambda a: a.weight,
            shared=(DatabaseGone, asyncpg.InsufficientResourcesError),
        )

    # May it be sent? -------------------------------------------------------------------------------

    async def check(self, caller: Caller, outgoing: Outgoing) -> Checked:
        """Raise the contract's answer where this caller may not send this (emails.md 1.6 to 1.8)."""
        if outgoing.template is not None:
            raise NotFound("Template")
        if outgoing.topic_id is not None:
            raise NotFound("Topic")
        name = outgoing.sender.domain
        domain = await self._senders.find(caller.team_id, name)
        if caller.domain_id is not None and (domain is None or domain.id != caller.domain_id):
            raise KeyOfAnotherDomain(name)
        if name in self._rules.simulator_domains:
            await self._check_sandbox(caller, outgoing)
            return Checked(outgoing, None)
        if domain is not None and not domain.sending:
            raise DomainNotVerified(name)
        if self._rules.domain_required and (domain is None or not domain.may_send):
            raise DomainNotVerified(name)
        if self._rules.refuse_reserved:
            _refuse_reserved(outgoing)
        return Checked(outgoing, domain)

    async def _check_sandbox(self, caller: Caller, outgoing: Outgoing) -> None:
        outside = [r.mailbox for r in outgoing.recipients() if not self._is_simulator(r.mailbox)]
        if not outside:
            return
        members = await queries.members(TeamDb(self._pool, caller.team_id))
        if any(mailbox.key not in members for mailbox in outside):
            raise SandboxOnly(outgoing.sender.domain)

    def _is_simulator(self, mailbox: Mailbox) -> bool:
        return mailbox.domain in self._rules.simulator_domains

    # Store -----------------------------------------------------------------------------------------

    async def store(
        self,
        caller: Caller,
        emails: Sequence[Checked],
        *,
        idempotency: Idempotency | None = None,
        answer: Callable[[Sequence[UUID]], bytes],
        status: int = 200,
        asked: Asked | None = None,
    ) -> bytes:
        """Commit these emails, all or none, and return `answer(ids)`, which is kept for the key.

        `asked` is the request whose log row is committed with them.
        """
        self._room.check()
        drafts = [self._draft(caller, checked) for checked in emails]
        body = answer([draft.id for draft in drafts])
        if not drafts and idempotency is None:
            return body
        weight = sum([draft.weight for draft in drafts])
        await self._keep_blobs(drafts)
        commits = self._metered if caller.is_metered else self._commits
        await commits.submit(_Acceptance(caller, drafts, idempotency, body, status, weight, asked))
        if asked is not None:
            asked.is_kept = True
        return body

    async def drain(self) -> None:
        """Return when nothing is being committed."""
        await self._commits.drain()
        await self._metered.drain()

    def _draft(self, caller: Caller, checked: Checked) -> Draft:
        stamp = self._ids.stamp()
        return drafted(caller, checked.outgoing, checked.domain, stamp, self._ids.token(), self._ids)

    async def _keep_blobs(self, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            for row in draft.attachments:
                if row.data is not None and len(row.data) > INLINE:
                    row.blob = f"attachments/{row.id}"
                    await self._blobs.put(row.blob, row.data)
                    row.data = None

    async def _flush(self, batch: Sequence[_Acceptance]) -> Sequence[BaseException | None]:
        reserved = [self._reserve(item) for item in batch]
        failed: dict[int, BaseException] = {}
        origins: Origins = {}
        deadline = self._claims.deadline()
        try:
            async with transaction(self._pool) as conn:
                failed = await self._claim_keys(conn, batch)
                failed |= await self._over_quota(conn, batch, failed)
                kept = [
                    (a, r) for i, (a, r) in enumerate(zip(batch, reserved, strict=True)) if i not in failed
                ]
                if kept:
                    origins = await self._write(conn, kept)
                    await self._record(conn, [a for a, _ in kept])
                await faults.point("accept.before_commit")
        except GONE as gone:
            if not await self._was_committed(batch, failed):
                self._forget(batch, reserved)
                raise DatabaseGone from gone
        except BaseException:
            self._forget(batch, reserved)
            raise
        figures.accepted(draft for i, a in enumerate(batch) if i not in failed for draft in a.drafts)
        for index, (item, room) in enumerate(zip(batch, reserved, strict=True)):
            # Committed is committed: the answer is yes, and work that is lost here comes back by its lease.
            try:
                await faults.point("accept.after_commit")
                self._hand_over(item, room, origins, deadline, stored=index not in failed)
            except Exception:
                log.exception("accept.hand_over_failed")
                self._forget([item], [room])
        return [failed.get(index) for index in range(len(batch))]

    def _reserve(self, item: _Acceptance) -> int:
        """How many work items of this acceptance the engine of this process takes over."""
        wanted = sum(len(draft.groups) for draft in item.drafts if draft.is_immediate)
        if self._engine is None or not wanted:
            return 0
        if any(self._engine.holds_back(item.caller.team_id, draft.groups) for draft in item.drafts):
            return 0
        if not self._engine.reserve(wanted, item.weight):
            return 0
        return wanted

    def _forget(self, batch: Sequence[_Acceptance], reserved: Sequence[int]) -> None:
        for item, room in zip(batch, reserved, strict=True):
            if room and self._engine is not None:
                self._engine.forget(room, item.weight)

    def _hand_over(
        self,
        item: _Acceptance,
        room: int,
        origins: Origins,
        deadline: float,
        *,
        stored: bool,
    ) -> None:
        if room and self._engine is not None:
            drafts = [draft for draft in item.drafts if stored and draft.is_immediate]
            items = [found for draft in drafts for found in hand_over(draft, origins, deadline)]
            self._engine.take(items, room, item.weight)
        elif stored:
            self._wake()

    async def _claim_keys(self, conn: Connection, batch: Sequence[_Acceptance]) -> dict[int, BaseException]:
        """Reserve the idempotency keys of the batch; answers those that are taken.

        The advisory lock is tried, never waited for: a key in flight elsewhere must not hold up the
        other callers of this commit (00-decisions 26).
        """
        keyed = [(index, a, a.idempotency) for index, a in enumerate(batch) if a.idempotency is not None]
        if not keyed:
            return {}
        failed: dict[int, BaseException] = {}
        names = [f"{a.caller.team_id} {key.scope} {key.key}" for _, a, key in keyed]
        held = await queries.lock_keys(conn, names)
        rows = []
        first: dict[tuple[UUID, str, str], int] = {}
        now = self._clock.now()
        for at, (index, a, key) in enumerate(keyed):
            name = (a.caller.team_id, key.scope, key.key)
            if at not in held or name in first:
                failed[index] = ConcurrentIdempotentRequest()
                continue
            first[name] = index
            rows.append((*name, key.fingerprint, a.status, a.answer, now))
        free = await queries.claim_keys(conn, rows, now - LIFETIME) if rows else set()
        for name, index in first.items():
            if name not in free:
                failed[index] = AlreadyAnswered()
        return failed

    async def _over_quota(
        self, conn: Connection, batch: Sequence[_Acceptance], failed: Mapping[int, BaseException]
    ) -> dict[int, BaseException]:
        """Spend the units of teams with a quota; answers those for which there are not enough, whose keys are
        free again."""
        metered = [
            (i, a) for i, a in enumerate(batch) if a.caller.is_metered and a.drafts and i not in failed
        ]
        if not metered:
            return {}
        wanted = [
            Spending(a.caller.team_id, a.drafts[0].at, sum([len(draft.targets) for draft in a.drafts]))
            for _, a in metered
        ]
        judged = zip(metered, await self._quotas.judge(conn, wanted), strict=True)
        over = [(index, a, problem) for (index, a), problem in judged if problem is not None]
        keys = [(a.caller.team_id, a.idempotency) for _, a, _ in over if a.idempotency is not None]
        if keys:
            await queries.release_keys(conn, [(team, key.scope, key.key) for team, key in keys])
        return {index: problem for index, _, problem in over}

    async def _record(self, conn: Connection, kept: Sequence[_Acceptance]) -> None:
        """The log rows of the requests that these emails came with."""
        answered = [
            Answered(
                a.asked,
                a.status,
                a.answer,
                [Content(draft.outgoing.html, draft.outgoing.text) for draft in a.drafts],
            )
            for a in kept
            if a.asked is not None
        ]
        if answered:
            await self._journal.keep(conn, answered)

    async def _write(self, conn: Connection, kept: Sequence[tuple[_Acceptance, int]]) -> Origins:
        rows = Rows(self._owner, self._clock.now() + LEASE)
        for item, room in kept:
            for draft in item.drafts:
                rows.add(draft, leased=bool(room) and draft.is_immediate)
        if not rows.openings:
            return {}
        await queries.insert(conn, rows)
        if rows.attachments:
            await queries.attach(conn, rows.attachments)
        if rows.fetches:
            jobs = [(team, self._ids.new(), email, at) for team, email, at in rows.fetches]
            await queries.add_jobs(conn, JOB_FETCH, jobs)
        await self._timeline.record(conn, openings=rows.openings)
        return await queries.suppressed(conn, rows.judged) if rows.judged else {}

    async def _was_committed(self, batch: Sequence[_Acceptance], failed: dict[int, BaseException]) -> bool:
        """Whether a commit whose connection was lost took place (design 2.6)."""
        stored = [d for i, a in enumerate(batch) if i not in failed for d in a.drafts]
        if not stored:
            return False
        for _ in range(LOOK_UP_TRIES):
            try:
                found = await queries.existing(
                    self._pool, list({d.team_id for d in stored}), [d.id for d in stored]
                )
            except GONE:
                await asyncio.sleep(LOOK_UP_PAUSE)
            else:
                return len(found) == len(stored)
        return False


def _refuse_reserved(outgoing: Outgoing) -> None:
    for field, mailboxes in (("to", outgoing.to), ("cc", outgoing.cc), ("bcc", outgoing.bcc)):
        if any(mailbox.domain in RESERVED_TEST_DOMAINS for mailbox in mailboxes):
            raise InvalidField(field, "Addresses of domains that are reserved for tests are refused.")
