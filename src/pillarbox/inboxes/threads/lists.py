"""Pages of threads (inboxes.md 5.1): newest first, by the time of the newest message.

A cursor is the place where its thread stands now. So it must be a thread of one of the folders, and it may
have ceased to match the other filters.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from pillarbox.inboxes.threads import list_queries
from pillarbox.inboxes.threads.list_filter import ThreadFilter
from pillarbox.inboxes.threads.list_queries import ListedThread
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import DEFAULT, NEWEST, Page
from pillarbox.kernel.wire.problems import NotFound

END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Position:
    """From where a list is read, and in which direction."""

    at: datetime
    id: UUID
    is_newer: bool


FIRST: Final = Position(END_OF_TIME, NEWEST, is_newer=False)


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """One page of a list."""

    threads: Sequence[ListedThread]
    has_more: bool


async def position(db: TeamDb, inbox_id: UUID, page: Page, thread_filter: ThreadFilter) -> Position:
    """Return the position where the page begins; 404 for a cursor that is no thread of the folders."""
    cursor = page.before or page.after
    if cursor is None:
        return FIRST
    found = await list_queries.place(db, inbox_id, cursor)
    if found is None or found.list_class not in thread_filter.places:
        raise NotFound("Thread")
    return Position(found.received_at, found.id, is_newer=page.before is not None)


async def refuse_unknown_labels(db: TeamDb, inbox_id: UUID, labels: Collection[UUID]) -> None:
    """Raise a 404 where one of them is no label of the inbox."""
    if labels and len(await list_queries.known_labels(db, inbox_id, list(labels))) < len(set(labels)):
        raise NotFound("Label")


async def thread_page(db: TeamDb, inbox_id: UUID, page: Page, thread_filter: ThreadFilter) -> ThreadPage:
    """Return a page of the threads of an inbox, with any text."""
    await refuse_unknown_labels(db, inbox_id, thread_filter.labels)
    start = await position(db, inbox_id, page, thread_filter)
    limit = page.limit or DEFAULT
    return await shown(db, inbox_id, await ids(db, inbox_id, thread_filter, start, limit + 1), limit, start)


async def shown(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID], limit: int, start: Position) -> ThreadPage:
    """Return the page of these threads, of which there is one more than asked for where there are more. They
    come in the direction in which they were read."""
    kept = list(ids[:limit])
    if start.is_newer:
        kept.reverse()
    return ThreadPage(await list_queries.items(db, inbox_id, kept) if kept else [], len(ids) > limit)


async def ids(
    db: TeamDb, inbox_id: UUID, thread_filter: ThreadFilter, start: Position, limit: int
) -> Sequence[UUID]:
    """Return up to `limit` threads from `start` on, in its direction; the filter's text does not count."""
    if thread_filter.labels:
        return await labelled(db, thread_filter, thread_filter.labels, start, limit)
    of_inbox = list_queries.newer if start.is_newer else list_queries.older
    return await of_inbox(db, inbox_id, thread_filter.classes, start.at, start.id, limit)


async def labelled(
    db: TeamDb, thread_filter: ThreadFilter, labels: Sequence[UUID], start: Position, limit: int
) -> Sequence[UUID]:
    """Return the same of the threads with one of these labels, instead of those that the filter names."""
    read = list_queries.labelled_newer if start.is_newer else list_queries.labelled_older
    return await read(db, labels, thread_filter.classes, start.at, start.id, limit)
