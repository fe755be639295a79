"""The changes that a client makes to a thread (inboxes.md 5.4 to 5.7 and section 8).

Each change runs in the caller's transaction: it takes the lock of the inbox, reads the thread, writes what is
different, and queues an event for each real difference. A change to what the thread already is gets the same
answer and writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.inboxes import events
from pillarbox.inboxes.events import ThreadLabel, ThreadRef
from pillarbox.inboxes.folders import KEPT_IN_TRASH, ThreadFolder
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.threads import queries
from pillarbox.inboxes.threads.queries import StoredThread
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import InvalidField, NotFound
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.webhooks.publish import Publisher, Reference

THREAD: Final = "Thread"
LABEL: Final = "Label"


async def found(db: TeamDb, inbox_id: UUID, thread_id: UUID) -> StoredThread:
    """Return the thread of the inbox, or raise a 404."""
    thread = await queries.get(db, inbox_id, thread_id)
    if thread is None:
        raise NotFound(THREAD)
    return thread


def moved(thread: StoredThread, folder: ThreadFolder, now: datetime) -> StoredThread:
    """Return the thread in that folder; one that is in the trash already keeps its deadline."""
    if folder == thread.folder:
        return thread
    purge_at = now + KEPT_IN_TRASH if folder is ThreadFolder.TRASH else None
    return thread._replace(folder=folder.value, purge_at=purge_at)


def marked(thread: StoredThread, *, is_read: bool) -> StoredThread:
    """Return the thread with all messages that came in read, or unread. One with an unread message is
    unread."""
    if is_read:
        return thread._replace(unread=0)
    return thread._replace(unread=thread.unread or thread.inbound)


def _counts(thread: StoredThread) -> bool:
    """Return whether it is one of the unread threads of its inbox."""
    return ThreadFolder(thread.folder) is ThreadFolder.INBOX and thread.unread > 0


class Threads:
    """Changes threads. `source` says in events who did."""

    def __init__(self, publisher: Publisher, clock: Clock) -> None:
        self._publisher = publisher
        self._clock = clock

    async def update(
        self,
        db: TeamDb,
        inbox_id: UUID,
        thread_id: UUID,
        *,
        is_read: bool | None = None,
        folder: ThreadFolder | None = None,
        label_id: UUID | None = None,
        source: events.Source = events.API,
    ) -> StoredThread:
        """Mark, move and label a thread, all of it or nothing; return it as it is then."""
        before = await self._locked(db, inbox_id, thread_id)
        added = [] if label_id is None else await _labels(db, inbox_id, [label_id])
        now = self._clock.now()
        after = before if is_read is None else marked(before, is_read=is_read)
        after = after if folder is None else moved(after, folder, now)
        await self._store(db, inbox_id, before, after)
        told = self._move_events(db, inbox_id, before, after, now, source)
        told += await self._label(db, inbox_id, after, added, (), now, source)
        await self._publisher.refer(db.connection, told)
        return await found(db, inbox_id, thread_id)

    async def trash(
        self, db: TeamDb, inbox_id: UUID, thread_id: UUID, source: events.Source = events.API
    ) -> bool:
        """Move a thread into the trash; False where it is there."""
        before = await self._locked(db, inbox_id, thread_id)
        now = self._clock.now()
        after = moved(before, ThreadFolder.TRASH, now)
        await self._store(db, inbox_id, before, after)
        await self._publisher.refer(
            db.connection, self._move_events(db, inbox_id, before, after, now, source)
        )
        return after != before

    async def add_labels(
        self,
        db: TeamDb,
        inbox_id: UUID,
        thread_id: UUID,
        labels: Collection[str],
        source: events.Source = events.API,
    ) -> StoredThread:
        """Put labels on a thread, which keeps the others."""
        thread = await self._locked(db, inbox_id, thread_id)
        added = await _labels(db, inbox_id, _ids(labels))
        told = await self._label(db, inbox_id, thread, added, (), self._clock.now(), source)
        await self._publisher.refer(db.connection, told)
        return await found(db, inbox_id, thread_id)

    async def set_labels(
        self,
        db: TeamDb,
        inbox_id: UUID,
        thread_id: UUID,
        label_texts: Collection[str],
        source: events.Source = events.API,
    ) -> StoredThread:
        """Let a thread have these labels and no others."""
        thread = await self._locked(db, inbox_id, thread_id)
        ids = _ids(label_texts)
        labels = await _labels(db, inbox_id, ids)
        removed = [label for label in thread.label_list if label.id not in ids]
        told = await self._label(db, inbox_id, thread, labels, removed, self._clock.now(), source)
        await self._publisher.refer(db.connection, told)
        return await found(db, inbox_id, thread_id)

    async def remove_label(
        self,
        db: TeamDb,
        inbox_id: UUID,
        thread_id: UUID,
        label_id: UUID,
        source: events.Source = events.API,
    ) -> StoredThread:
        """Take a label of the inbox off a thread."""
        thread = await self._locked(db, inbox_id, thread_id)
        removed = await _labels(db, inbox_id, [label_id])
        told = await self._label(db, inbox_id, thread, (), removed, self._clock.now(), source)
        await self._publisher.refer(db.connection, told)
        return await found(db, inbox_id, thread_id)

    async def assign(
        self,
        db: TeamDb,
        inbox_id: UUID,
        thread_id: UUID,
        email: str | None,
        *,
        by: str | None = None,
        source: events.Source = events.API,
    ) -> str | None:
        """Assign a thread to a member of the team, or to nobody; returns the member's address. `by` is who
        does it, where that is a person."""
        thread = await self._locked(db, inbox_id, thread_id)
        assignee = None if email is None else await _member(db, email)
        if assignee != thread.assignee:
            await queries.assign(db, thread_id, assignee)
            ref = self._ref(db, inbox_id, thread_id, source)
            await self._publisher.refer(
                db.connection, [events.assigned(ref, self._clock.now(), assignee, thread.assignee, by)]
            )
        return assignee

    async def _locked(self, db: TeamDb, inbox_id: UUID, thread_id: UUID) -> StoredThread:
        """Return the thread, with its inbox locked until the transaction ends; raises NotFound."""
        if not await lock(db.connection, [(db.team_id, inbox_id)]):
            raise NotFound("Inbox")
        return await found(db, inbox_id, thread_id)

    async def _store(self, db: TeamDb, inbox_id: UUID, before: StoredThread, after: StoredThread) -> None:
        if after == before:
            return
        if (after.folder, after.purge_at) != (before.folder, before.purge_at):
            await queries.put(db, after)
        if after.unread != before.unread:
            await queries.mark(db, after)
        if _counts(after) != _counts(before):
            await queries.add_unread(db, inbox_id, int(_counts(after)) - int(_counts(before)))
        if after.labels is not None:
            await queries.follow(db, [after.id])

    async def _label(
        self,
        db: TeamDb,
        inbox_id: UUID,
        thread: StoredThread,
        thread_labels: Sequence[ThreadLabel],
        unwanted: Sequence[ThreadLabel],
        now: datetime,
        source: events.Source,
    ) -> list[Reference]:
        """Put these labels on the thread and take those off, as far as it makes a difference; returns the
        events of it."""
        there = {label.id for label in thread.label_list}
        added = [label for label in thread_labels if label.id not in there]
        removed = [label for label in unwanted if label.id in there]
        if removed:
            await queries.remove_labels(db, thread.id, [label.id for label in removed])
        if added:
            await queries.add_labels(db, thread.id, [label.id for label in added])
        ref = self._ref(db, inbox_id, thread.id, source)
        return [events.labels_updated(ref, now, added=label) for label in added] + [
            events.labels_updated(ref, now, removed=label) for label in removed
        ]

    def _move_events(
        self,
        db: TeamDb,
        inbox_id: UUID,
        before: StoredThread,
        after: StoredThread,
        now: datetime,
        source: events.Source,
    ) -> list[Reference]:
        if before.folder == after.folder:
            return []
        ref = self._ref(db, inbox_id, after.id, source)
        return [events.folder_updated(ref, now, ThreadFolder(before.folder), ThreadFolder(after.folder))]

    def _ref(self, db: TeamDb, inbox_id: UUID, thread_id: UUID, source: events.Source) -> ThreadRef:
        return ThreadRef(db.team_id, inbox_id, thread_id, source)


def _ids(texts: Collection[str]) -> list[UUID]:
    """Return the ids of labels, each once; 404 for one that cannot be an id."""
    if not all(map(well_formed, texts)):
        raise NotFound(LABEL)
    return list(dict.fromkeys(map(UUID, texts)))


async def _labels(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> list[ThreadLabel]:
    """Return the labels of the inbox, the oldest first; 404 where one of them is none."""
    labels = await queries.labels(db, inbox_id, ids)
    if len(labels) < len(ids):
        raise NotFound(LABEL)
    return labels


async def _member(db: TeamDb, email: str) -> str:
    found = await queries.member(db, email.strip())
    if found is None:
        raise InvalidField("email", "Use the address of a member of the team.")
    return found
