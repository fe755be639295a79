"""Storing mail for inboxes: the received email, its message and its thread in one transaction.

The inboxes of a commit are locked first. So what is found out then, which thread a message joins and whether
it has been here before, is so until the commit (docs/decisions/0091, 0096). Mail for an inbox that somebody
else has locked is left out: it waits beside the others (`inbox_queues.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from msgspec.json import decode

from pillarbox.inboxes.locking import InboxKey, LockTimeout, lock_at
from pillarbox.inboxes.policy.senders import SenderRules
from pillarbox.inboxes.threading import join
from pillarbox.inboxes.threading.new_messages import NewMessage
from pillarbox.inboxes.threading.thread_plan import ThreadPlan
from pillarbox.inboxes.trust.known_senders import KnownSenders
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.combined_statement import Statement, StatementFailed
from pillarbox.kernel.postgres.database import Connection
from pillarbox.receiving import store_queries
from pillarbox.receiving.arrivals.inbox_addresses import by_inbox
from pillarbox.receiving.arrivals.message_fields import MessageFields
from pillarbox.receiving.rows import PreparedReceipt
from pillarbox.receiving.store_queries import WrittenRow, with_inboxes
from pillarbox.webhooks.publish import Publisher

MOST_KNOWN: Final = 10_000

StoreRows = Callable[
    [Connection, Sequence[PreparedReceipt], Sequence[Statement]], Awaitable[list[WrittenRow]]
]
"""Stores rows with the statements beside them."""


class ForInbox(NamedTuple):
    """A mail of a team, with what its inboxes keep of it."""

    draft: PreparedReceipt
    fields: MessageFields


class JoinableMails(Protocol):
    """The mails of a commit, each once for each team; more for the same `addresses` may join them."""

    @property
    def mails(self) -> list[ForInbox]: ...

    def join(self, addresses: Collection[str]) -> None: ...


class AddressedInboxes(NamedTuple):
    """The inboxes of each team by their addresses, and the teams that have webhooks. Those at the addresses
    `busy` are locked by somebody else. The others are `described` for searches up to these ids. `senders` has
    the inboxes that block some."""

    inboxes: Mapping[UUID, Mapping[str, InboxKey]]
    described: Mapping[InboxKey, UUID]
    with_webhooks: Collection[UUID]
    busy: Mapping[str, InboxKey]
    senders: Mapping[InboxKey, SenderRules]


class InboxCommitResult(NamedTuple):
    """The rows that were written, and the mails that were left because another transaction has locked an
    inbox. `left` gives that inbox by team and fingerprint, `busy` by address."""

    rows: list[WrittenRow]
    left: Mapping[tuple[UUID, bytes], InboxKey]
    busy: Mapping[str, InboxKey]


class SeenBefore(Exception):  # noqa: N818 - what was assumed is not so, which is no error
    """Nothing is to be committed: one of the messages, or its id, is known, and it was taken for new."""


class KnownAddresses:
    """The addresses that lately were those of inboxes. Mail for them goes the way of inboxes at once; for
    any other the database says whether it has to."""

    def __init__(self) -> None:
        self._addresses: set[str] = set()

    def has_one_of(self, addresses: Collection[str] | None) -> bool:
        return addresses is not None and not self._addresses.isdisjoint(addresses)

    def learn(self, asked: Collection[str], addresses: Collection[str]) -> None:
        """Note that of the addresses `asked` exactly these are addresses of inboxes."""
        self._addresses.difference_update(asked)
        if len(self._addresses) + len(addresses) > MOST_KNOWN:
            self._addresses.clear()
        self._addresses.update(addresses)


class InboxCommits:
    """Stores mail of inboxes, in the caller's transaction."""

    def __init__(self, ids: Ids, publisher: Publisher) -> None:
        self._ids = ids
        self._publisher = publisher
        self._senders = KnownSenders()
        self.known = KnownAddresses()

    async def write(
        self,
        conn: Connection,
        batch: JoinableMails,
        now: datetime,
        store_rows: StoreRows,
        waited: InboxKey | LockTimeout | None = None,
        expired: datetime | None = None,
    ) -> InboxCommitResult:
        """Store them with their messages, threads and events. Left out is what all of its inboxes have
        already, and what has to wait for an inbox other than the one `waited` for.

        Raises SeenBefore where a team has seen a message, or an inbox knows its id: repetitions are rare, and
        looking for them costs every commit two round trips. With `expired` it looks for those that were seen
        since then and leaves them out.
        """
        await self._senders.read(conn, now, {mail.draft.row.team_id for mail in batch.mails})
        asked = {address for mail in batch.mails for address in mail.draft.row.candidates or ()}
        routes = await self._routes(conn, asked, waited)
        batch.join(asked)
        mails: Sequence[ForInbox] = batch.mails
        left = _left(mails, routes) if routes.busy else {}
        mails = [mail for mail in mails if mail.draft.key not in left]
        if not mails:
            return InboxCommitResult([], left, routes.busy)
        if expired is not None:
            seen = await store_queries.seen(conn, [mail.draft.key for mail in mails], expired)
            mails = [mail for mail in mails if mail.draft.key not in seen]
        placed = [_messages(mail, routes) for mail in mails]
        messages = [one for of_mail in placed for one in of_mail]
        plan = await join.planned(conn, self._ids, now, messages, if_new=expired is None)
        drafts = _to_store(mails, placed, plan)
        told = [event for event in plan.told if event.team_id in routes.with_webhooks]
        telling = self._publisher.referring(told) if told else None
        stored = [placed.message for placed in plan.placed]
        beside = [
            *join.all_writes(plan, now, telling, routes.described),
            *await self._senders.storing(conn, now, stored),
        ]
        try:
            written = await store_rows(conn, drafts, beside)
        except StatementFailed:
            raise SeenBefore from None
        if len([row for row in written if row.is_stored]) < len(drafts):
            raise SeenBefore
        await join.follow(conn, plan)
        return InboxCommitResult(written, left, routes.busy)

    async def _routes(
        self, conn: Connection, asked: Collection[str], waited: InboxKey | LockTimeout | None
    ) -> AddressedInboxes:
        """Return the inboxes of each team by these addresses; they are locked."""
        found = await lock_at(conn, asked, waited)
        inboxes: dict[UUID, dict[str, InboxKey]] = {}
        for address, one in found.items():
            inboxes.setdefault(one.inbox[0], {})[address] = one.inbox
        self.known.learn(asked, found)
        busy = {address: one.inbox for address, one in found.items() if one.indexed_up_to is None}
        described = {one.inbox: one.indexed_up_to for one in found.values() if one.indexed_up_to is not None}
        with_webhooks = frozenset(one.inbox[0] for one in found.values() if one.has_webhooks)
        senders = {one.inbox: one.senders for one in found.values() if one.senders is not None}
        return AddressedInboxes(
            inboxes=inboxes, described=described, with_webhooks=with_webhooks, busy=busy, senders=senders
        )


def _left(mails: Sequence[ForInbox], routes: AddressedInboxes) -> dict[tuple[UUID, bytes], InboxKey]:
    """Return the mails that one of these inboxes has to get, each with the inbox."""
    busy = set(routes.busy.values())
    found = {}
    for mail in mails:
        draft = mail.draft
        for inbox in by_inbox(draft.recipients, routes.inboxes.get(draft.row.team_id, {})):
            if inbox in busy:
                found[draft.key] = inbox
    return found


def _messages(mail: ForInbox, routes: AddressedInboxes) -> list[NewMessage]:
    """Return the messages of one mail, one for each inbox that it is for. Mail of blocked senders is spam."""
    row, draft = mail.draft.row, mail.draft
    inboxes = by_inbox(draft.recipients, routes.inboxes.get(row.team_id, {}))
    found = [mail.fields.message(row, inbox[1], to) for inbox, to in inboxes.items()]
    if not routes.senders:
        return found
    return [
        replace(message, is_spam=True)
        if (rules := routes.senders.get(message.inbox)) is not None
        and rules.is_blocked(message.sender_key, row.mail_from)
        else message
        for message in found
    ]


def _to_store(
    mails: Sequence[ForInbox], placed: Sequence[Sequence[NewMessage]], plan: ThreadPlan
) -> list[PreparedReceipt]:
    """Return the received emails that are to be stored, each with the inboxes that have it.

    What comes again to inboxes alone that have it is not stored again (inboxes.md 9.3); where another address
    of the team gets it as well, it is.
    """
    drafts = []
    outcomes = iter(plan.joined)
    returned = {(*one.inbox, one.id) for one in plan.returned}
    for mail, messages in zip(mails, placed, strict=True):
        draft = mail.draft
        joined = [(message, next(outcomes)) for message in messages]
        repeated = [
            message
            for message, outcome in joined
            if not outcome.is_stored and (*message.inbox, outcome.message_id) not in returned
        ]
        if sum([len(decode(message.to_list)) for message in repeated]) == len(draft.recipients):
            continue
        having = tuple([message.inbox_id for message, outcome in joined if outcome.is_stored])
        drafts.append(replace(draft, row=with_inboxes(draft.row, having)))
    return drafts
