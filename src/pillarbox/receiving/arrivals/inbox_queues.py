"""Commits of mail for inboxes: one group for all, and a queue for each inbox that somebody else has locked.

Who holds the lock of an inbox for long delays mail for that inbox alone. The group waits for a lock as long
as a commit of another process may take, so it stays large where all have mail for the same inboxes. After
that it takes what is free, and from then on leaves out the inbox that was locked. What is left out goes into
the queue of its inbox, which waits for that lock and holds no other meanwhile; when it has it the inbox
belongs to the group again. Callers wait no longer than their time limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.inboxes.locking import InboxKey, LockTimeout
from pillarbox.kernel.postgres.group_commit import GroupCommit
from pillarbox.kernel.wire.problems import DatabaseGone
from pillarbox.kernel.work.keyed_commits import KeyedCommits
from pillarbox.receiving.arrivals.inbox_commits import ForInbox, InboxCommitResult

MOST_TOGETHER: Final = 200
"""Messages of one commit."""
AT_ONCE: Final = 4
"""Queues that wait for their lock with a connection."""
MOST_BUSY: Final = 10_000
"""Addresses of locked inboxes that are remembered."""

# A lock that was not to be had is no fault of one mail: to try each again would only take longer.
_SHARED: Final = (DatabaseGone, asyncpg.InsufficientResourcesError, asyncpg.LockNotAvailableError)


class _QueuedMails(NamedTuple):
    """Mails of one message, and the inbox in whose queue they are."""

    mails: Sequence[ForInbox]
    waited: InboxKey | None


class InboxCommit:
    """The mails of a commit. Until it has the locks of their inboxes those for the same inboxes may join it:
    a commit that waits becomes larger, so mail that comes at a high rate needs fewer of them."""

    def __init__(
        self, waiting: Sequence[_QueuedMails], group: GroupCommit[_QueuedMails, _CommitDone] | None = None
    ) -> None:
        self.waiting = list(waiting)
        self._group = group

    @property
    def mails(self) -> list[ForInbox]:
        """Each message once for each team."""
        mails = [mail for waiting in self.waiting for mail in waiting.mails]
        return list({mail.draft.key: mail for mail in reversed(mails)}.values())[::-1]

    def join(self, addresses: Collection[str]) -> None:
        """Take what waits and is for nobody but these addresses, whose inboxes are locked now."""
        if self._group is not None:
            self.waiting += self._group.join_flush(lambda waiting: _is_for(waiting, addresses))


Write = Callable[[InboxCommit, InboxKey | LockTimeout | None], Awaitable[InboxCommitResult]]
"""Commits mails; for the lock of one inbox it may wait, or for those of all briefly."""


class _CommitDone(NamedTuple):
    """The ids of the mails that were stored, and the mails that were left, each with the inbox that is
    locked."""

    ids: tuple[UUID, ...]
    left: Sequence[tuple[InboxKey, ForInbox]]


class InboxQueues:
    """Takes mail for inboxes; `write` commits it. At most `most_waiting` octets wait together, and an eighth
    of that for one inbox that is locked."""

    def __init__(self, write: Write, *, most_waiting: int) -> None:
        self._write = write
        self._busy: dict[str, InboxKey] = {}
        """Addresses of the inboxes that the group leaves out."""
        self._group: GroupCommit[_QueuedMails, _CommitDone] = GroupCommit(
            self._flush,
            kind="receive_for_inboxes",
            flushers=1,
            most_items=MOST_TOGETHER,
            weigh=_weight,
            most_waiting=most_waiting,
            shared=_SHARED,
        )
        self._queues: KeyedCommits[_QueuedMails, _CommitDone] = KeyedCommits(
            self._flush,
            kind="receive_for_locked_inbox",
            most_items=MOST_TOGETHER,
            weigh=_weight,
            at_once=AT_ONCE,
            most_waiting=most_waiting // 8,
            shared=_SHARED,
        )

    async def submit(self, mails: Sequence[ForInbox]) -> tuple[UUID, ...]:
        """Return when all of it is committed: what was stored now."""
        queue = self._queue_of(mails) if self._busy else None
        done = await self._submitted(mails, queue)
        ids = done.ids
        while done.left:
            # Each waits for one lock, and the next time for another: until all are free or the time is over.
            inbox = done.left[0][0]
            others = [one for one in done.left if one[0] != inbox]
            done = await self._submitted([mail for one, mail in done.left if one == inbox], inbox)
            ids += done.ids
            done = done._replace(left=[*done.left, *others])
        return ids

    async def drain(self) -> None:
        """Return when nothing is being committed."""
        await self._group.drain()
        await self._queues.drain()

    async def _submitted(self, mails: Sequence[ForInbox], waited: InboxKey | None) -> _CommitDone:
        waiting = _QueuedMails(mails, waited)
        return await (self._group.submit(waiting) if waited is None else self._queues.submit(waited, waiting))

    def _queue_of(self, mails: Sequence[ForInbox]) -> InboxKey | None:
        """Return the inbox for which this mail has to wait."""
        for mail in mails:
            for recipient in mail.draft.recipients:
                inbox = self._busy.get(recipient.lower())
                if inbox is not None:
                    return inbox
        return None

    async def _flush(self, batch: Sequence[_QueuedMails]) -> Sequence[_CommitDone]:
        waited = batch[0].waited
        shared = InboxCommit(batch, self._group if waited is None else None)
        done = await self._written(shared, waited)
        if waited is not None:
            self._busy = {address: one for address, one in self._busy.items() if one != waited}
        if len(self._busy) + len(done.busy) > MOST_BUSY:
            self._busy.clear()
        self._busy.update(done.busy)
        stored = {row.id for row in done.rows if row.is_stored}
        return [
            _CommitDone(
                tuple([mail.draft.row.id for mail in mails if mail.draft.row.id in stored]),
                # A repetition of what is not stored yet has to wait as well.
                [(done.left[mail.draft.key], mail) for mail in mails if mail.draft.key in done.left],
            )
            for mails, _ in shared.waiting
        ]

    async def _written(self, batch: InboxCommit, waited: InboxKey | None) -> InboxCommitResult:
        if waited is not None:
            return await self._write(batch, waited)
        try:
            return await self._write(
                batch, LockTimeout(frozenset([inbox for _, inbox in self._busy.values()]))
            )
        except asyncpg.LockNotAvailableError:
            return await self._write(batch, None)


def _is_for(waiting: _QueuedMails, addresses: Collection[str]) -> bool:
    return all(address in addresses for mail in waiting.mails for address in mail.draft.row.candidates or ())


def _weight(waiting: _QueuedMails) -> int:
    return sum([mail.draft.weight for mail in waiting.mails])
