"""Accepting outgoing mail: the entry point for all of it but copies of broadcasts (architecture 2.8).

`check` asks what only the database knows (may this sender write as this address?); `store` commits
emails with their recipients, work items, timeline, idempotent answer and log row in one group commit, and
hands the work to this process's engine when the commit returns. Teams with a quota have a group commit of
their own, because theirs waits for its turn. Mail that comes with work for the same transaction
(`TransactionHook`) is committed by itself: that work may wait for locks, and nobody else's mail waits for
them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.delivery.engine import Engine
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.domains.senders import SenderDomain
from pillarbox.emails import prometheus, queries
from pillarbox.emails.commits import Acceptance, Commits, TransactionHook
from pillarbox.emails.copies import TopicRules
from pillarbox.emails.outgoing import OutgoingEmail
from pillarbox.emails.permitted_senders import PermittedSenders, SenderPolicies
from pillarbox.emails.rows import JOB_FETCH, Origins, PreparedEmail, drafted, hand_over
from pillarbox.emails.tracked_copies import TrackedCopies, is_tracked
from pillarbox.kernel.http.idempotency import Idempotency
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.request_log import RequestRecord
from pillarbox.kernel.postgres.database import Connection, TeamDb, after_commit
from pillarbox.kernel.postgres.group_commit import GroupCommit
from pillarbox.kernel.process import faults
from pillarbox.kernel.security.authentication import Caller, InboxKeyMayNot, InboxRight
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.problems import DatabaseGone, Forbidden, InvalidField, NotFound, RateLimited
from pillarbox.kernel.work.keyed_commits import KeyedCommits
from pillarbox.mail.message.address import Mailbox

log = get("accept")

INLINE = 256 * 1024
"""Attachments up to this size go into the commit; larger ones are blobs, synced before it."""

SHARED = (DatabaseGone, asyncpg.InsufficientResourcesError)

MOST_ROWS = 2000
"""So many deliveries to webhooks go into one commit, unless one request alone makes more."""

ROW_WEIGHT = 4096
MOST_WAITING = 64 * 1024 * 1024
"""The bytes that one team may have waiting in its commit queue."""

WITHIN_AT_ONCE = 3
"""So many commits with work of their callers one process has at once; the others of its connections are for
the group commits and the engine."""

RESERVED_TEST_DOMAINS = frozenset({"example.com", "example.net", "example.org", "test.com"})
MOST_FETCHES = 1000
"""Emails of one team whose attachments wait to be fetched."""

FETCHES_RETRY = 30


class SandboxOnly(Forbidden):
    def __init__(self, domain: str) -> None:
        super().__init__(
            f"Emails from {domain} are for testing: they may only go to simulator addresses and to the "
            "addresses of your own team. To send to other recipients, verify a domain."
        )


class KeyOfAnotherAddress(Forbidden):
    def __init__(self, address: str) -> None:
        super().__init__(f"This API key may only send from its inbox. It may not send from {address}.")


class TooManyFetches(RateLimited):
    def __init__(self) -> None:
        super().__init__(
            f"Attachments of {MOST_FETCHES} emails of your team are being fetched already. Try again later.",
            {"retry-after": str(FETCHES_RETRY)},
        )


@dataclass(frozen=True, slots=True)
class SendingPolicy:
    """The operator's settings that decide what may be sent."""

    refuse_reserved: bool = False


class AuthorizedEmail(NamedTuple):
    """An email that its sender may send, with the domain that signs it."""

    outgoing: OutgoingEmail
    domain: SenderDomain | None


class Accept:
    """Checks and stores outgoing mail."""

    def __init__(
        self,
        *,
        pool: asyncpg.Pool,
        ids: Ids,
        writer: Commits,
        senders: PermittedSenders,
        topics: TopicRules,
        tracked: TrackedCopies,
        blobs: BlobStore,
        check_capacity: Callable[[], None],
        rules: SendingPolicy,
        policies: SenderPolicies,
        engine: Engine | None,
        claims: ItemClaims,
        note_mail: Callable[[], None],
        wake: Callable[[], None],
    ) -> None:
        self._pool = pool
        self._ids = ids
        self._writer = writer
        self._senders = senders
        self._topics = topics
        self._tracked = tracked
        self._blobs = blobs
        self._admits = check_capacity
        self._rules = rules
        self._policies = policies
        self._engine = engine
        self._claims = claims
        self._note_mail = note_mail
        self._wake = wake
        self._commits = self._group("accept")
        self._metered = self._group("accept metered")
        self._team_commits: KeyedCommits[Acceptance, None] = KeyedCommits(
            self._flush,
            kind="accept webhooks",
            weigh=lambda a: max(a.weight, writer.fan_out(a) * ROW_WEIGHT),
            most_weight=MOST_ROWS * ROW_WEIGHT,
            at_once=1,
            most_waiting=MOST_WAITING,
            shared=SHARED,
        )
        self._within: KeyedCommits[Acceptance, None] = KeyedCommits(
            self._flush,
            kind="accept within",
            weigh=lambda a: a.weight,
            most_items=1,
            at_once=WITHIN_AT_ONCE,
            most_waiting=MOST_WAITING,
            shared=SHARED,
        )

    def _group(self, kind: str) -> GroupCommit[Acceptance, None]:
        return GroupCommit(
            self._flush,
            kind=kind,
            flushers=1,
            weigh=lambda a: a.weight,
            shared=SHARED,
        )

    # May it be sent? -------------------------------------------------------------------------------

    async def topics(self, caller: Caller, topic_ids: Collection[UUID]) -> set[UUID]:
        """Return those of these topics that the team has, for `check`."""
        return await self._topics.live(TeamDb(self._pool, caller.team_id), topic_ids) if topic_ids else set()

    async def check(
        self, caller: Caller, outgoing: OutgoingEmail, topics: Collection[UUID] | None = None
    ) -> AuthorizedEmail:
        """Return the email as it may be sent; raise the contract's answer where this caller may not send it
        (emails.md 1.6 to 1.8, inboxes.md 3.7). `topics` are those that the team has, where that is known
        already."""
        if (topic_id := outgoing.topic_id) is not None:
            if topics is None:
                topics = await self.topics(caller, [topic_id])
            if topic_id not in topics:
                raise NotFound("Topic")
        if caller.inbox_id is not None:
            _refuse_other_inbox(caller, outgoing)
        name = outgoing.sender.domain
        domain = await self._senders.find(caller.team_id, name, caller.domain_id, is_simulator=True)
        if name in self._senders.simulator_domains:
            await self._check_sandbox(caller, outgoing)
            return AuthorizedEmail(outgoing, None)
        if self._rules.refuse_reserved:
            _refuse_reserved(outgoing)
        if domain is not None and domain.has_policies:
            outgoing = await self._policies.applied(caller, outgoing)
        return AuthorizedEmail(outgoing, domain)

    async def _check_sandbox(self, caller: Caller, outgoing: OutgoingEmail) -> None:
        outside = [r.mailbox for r in outgoing.recipients() if not self._is_simulator(r.mailbox)]
        if not outside:
            return
        members = await queries.members(TeamDb(self._pool, caller.team_id))
        if any(mailbox.key not in members for mailbox in outside):
            raise SandboxOnly(outgoing.sender.domain)

    def _is_simulator(self, mailbox: Mailbox) -> bool:
        return mailbox.domain in self._senders.simulator_domains

    # Store -----------------------------------------------------------------------------------------

    async def store(
        self,
        caller: Caller,
        emails: Sequence[AuthorizedEmail],
        *,
        idempotency: Idempotency | None = None,
        answer: Callable[[Sequence[UUID]], bytes],
        status: int = 200,
        asked: RequestRecord | None = None,
        hook: TransactionHook | None = None,
    ) -> bytes:
        """Commit these emails, all or none, and return `answer(ids)`, which is kept for the key.

        `asked` is the request whose log row is committed with them, `hook` what is done in the same
        transaction. Raises what `check_capacity` does where no mail can be taken for now, TooManyFetches,
        and what `hook` raises. Further: AlreadyAnswered and ConcurrentIdempotentRequest for the key, the
        problem of a quota, DatabaseGone where nothing was committed, and OutcomeUnknown where that is not
        known.
        """
        self._admits()
        drafts = [await self._draft(caller, checked) for checked in emails]
        weight, are_immediate, have_files = 0, True, False
        for draft in drafts:
            weight += draft.weight
            if not draft.is_immediate:
                are_immediate = False
            if draft.attachments:
                have_files = True
        if have_files and any(draft.waits_for_files for draft in drafts):
            await self._check_fetches(caller)
        body = answer([draft.id for draft in drafts])
        if not drafts and idempotency is None:
            return body
        if have_files:
            await self._store_blobs(drafts)
        acceptance = Acceptance(
            caller=caller,
            drafts=drafts,
            idempotency=idempotency,
            answer=body,
            status=status,
            weight=weight,
            asked=asked,
            hook=hook,
        )
        if hook is not None:
            await self._within.submit(hook.key, acceptance)
        elif not are_immediate and any(draft.outgoing.scheduled_at is not None for draft in drafts):
            await self._submit_scheduled(acceptance)
        else:
            await self._commits_of(caller).submit(acceptance)
        if asked is not None:
            asked.is_kept = True
        return body

    async def store_in(self, conn: Connection, caller: Caller, checked: AuthorizedEmail) -> UUID:
        """Store one email without attachments in the caller's own transaction; the engines are woken when
        it is committed. Returns the email's id."""
        self._admits()
        draft = await self._draft(caller, checked)
        acceptance = Acceptance(
            caller=caller,
            drafts=[draft],
            idempotency=None,
            answer=b"",
            status=200,
            weight=draft.weight,
            asked=None,
        )
        await self._writer.write_in(conn, acceptance)
        after_commit(conn, self._wake)
        return draft.id

    async def _check_fetches(self, caller: Caller) -> None:
        """Raise TooManyFetches while MOST_FETCHES files of the team wait to be fetched. Requests at the same
        time may exceed the number, as nothing is locked."""
        db = TeamDb(self._pool, caller.team_id)
        if await queries.waiting_jobs(db, JOB_FETCH, MOST_FETCHES) >= MOST_FETCHES:
            raise TooManyFetches

    def _commits_of(self, caller: Caller) -> GroupCommit[Acceptance, None]:
        return self._metered if caller.is_metered else self._commits

    async def _submit_scheduled(self, acceptance: Acceptance) -> None:
        """Submit the event of scheduled mail, the only mail whose acceptance is an event for webhooks."""
        caller = acceptance.caller
        await self._writer.learn(caller.team_id)
        if self._writer.fan_out(acceptance):
            await self._team_commits.submit(caller.team_id, acceptance)
        else:
            await self._commits_of(caller).submit(acceptance)

    async def drain(self) -> None:
        """Return when nothing is being committed."""
        await self._within.drain()
        await self._team_commits.drain()
        await self._commits.drain()
        await self._metered.drain()

    async def _draft(self, caller: Caller, checked: AuthorizedEmail) -> PreparedEmail:
        stamp, out, domain = self._ids.stamp(), checked.outgoing, checked.domain
        tracking = None
        if is_tracked(domain, out.html):
            tracking = await self._tracked.of(domain, out.html, out.headers, stamp.at)
        return drafted(caller, out, domain, stamp, self._ids.token(), self._ids, tracking)

    async def _store_blobs(self, drafts: Sequence[PreparedEmail]) -> None:
        for draft in drafts:
            for row in draft.attachments:
                if row.data is not None and len(row.data) > INLINE:
                    row.blob = f"attachments/{row.id}"
                    await self._blobs.put(row.blob, row.data)
                    row.data = None

    async def _flush(self, batch: Sequence[Acceptance]) -> Sequence[BaseException | None]:
        reserved = [self._reserve(item) for item in batch]
        deadline = self._claims.deadline()
        try:
            failed, origins = await self._writer.commit(batch, [count > 0 for count in reserved])
        except BaseException:
            self._cancel_reservations(batch, reserved)
            raise
        self._note_mail()
        prometheus.accepted(draft for i, a in enumerate(batch) if i not in failed for draft in a.drafts)
        for index, (item, count) in enumerate(zip(batch, reserved, strict=True)):
            # Committed is committed: the answer is yes, and work that is lost here comes back by its lease.
            try:
                await faults.point("accept.after_commit")
                self._hand_over(item, count, origins, deadline, stored=index not in failed)
            except Exception:
                log.exception("accept.hand_over_failed")
                self._cancel_reservations([item], [count])
        return [failed.get(index) for index in range(len(batch))]

    def _reserve(self, item: Acceptance) -> int:
        """Reserve room in the engine of this process; return how many work items of this acceptance it
        takes over."""
        wanted = sum(len(draft.groups) for draft in item.drafts if draft.is_handed_over)
        if self._engine is None or not wanted:
            return 0
        if any(self._engine.holds_back(item.caller.team_id, draft.groups) for draft in item.drafts):
            return 0
        if not self._engine.reserve(wanted, item.weight):
            return 0
        return wanted

    def _cancel_reservations(self, batch: Sequence[Acceptance], reserved: Sequence[int]) -> None:
        for item, count in zip(batch, reserved, strict=True):
            if count and self._engine is not None:
                self._engine.cancel_reservation(count, item.weight)

    def _hand_over(
        self,
        item: Acceptance,
        count: int,
        origins: Origins | None,
        deadline: float,
        *,
        stored: bool,
    ) -> None:
        if origins is None:
            # Its lease brings the work back, and it is judged then.
            self._cancel_reservations([item], [count])
        elif count and self._engine is not None:
            drafts = [draft for draft in item.drafts if stored and draft.is_handed_over]
            items = [found for draft in drafts for found in hand_over(draft, origins, deadline)]
            self._engine.take(items, count, item.weight)
            if stored and len(drafts) < len(item.drafts):
                self._wake()
        elif stored:
            self._wake()


def _refuse_other_inbox(caller: Caller, outgoing: OutgoingEmail) -> None:
    """Raise where a key for one inbox sends from another address, or may not send."""
    if InboxRight.SEND not in caller.inbox_rights:
        raise InboxKeyMayNot
    if outgoing.sender.key != caller.inbox_address:
        raise KeyOfAnotherAddress(outgoing.sender.addr_spec)


def _refuse_reserved(outgoing: OutgoingEmail) -> None:
    for field, mailboxes in (("to", outgoing.to), ("cc", outgoing.cc), ("bcc", outgoing.bcc)):
        if any(mailbox.domain in RESERVED_TEST_DOMAINS for mailbox in mailboxes):
            raise InvalidField(field, "Addresses of domains that are reserved for tests are refused.")
