"""Pages of the messages of a thread (inboxes.md 6.1): the oldest first, so `after` goes to the newer ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from pillarbox.inboxes.messages import queries
from pillarbox.inboxes.messages.queries import MessagePosition, StoredMessage
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import DEFAULT, OLDEST, Page
from pillarbox.kernel.wire.problems import NotFound

BEGINNING: Final = MessagePosition(datetime(1, 1, 1, tzinfo=UTC), OLDEST)


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages of a thread, the oldest first, and whether there are more in the direction of the page."""

    rows: list[StoredMessage]
    has_more: bool
    is_before: bool
    """Whether the page ends at a cursor, so that its direction is backwards."""


async def message_page(db: TeamDb, inbox_id: UUID, thread_id: UUID, page: Page) -> MessagePage:
    """Return a page of a thread; 404 for a thread that the inbox does not have, and a cursor that is no
    message of the thread."""
    if not await queries.has_thread(db, inbox_id, thread_id):
        raise NotFound("Thread")
    after = await _place(db, inbox_id, thread_id, page.after)
    before = await _place(db, inbox_id, thread_id, page.before)
    limit = page.limit or DEFAULT
    start = BEGINNING if after is None and before is None else after
    rows = await queries.page(db, inbox_id, thread_id, start, before, limit + 1)
    is_before = before is not None
    return MessagePage(rows[-limit:] if is_before else rows[:limit], len(rows) > limit, is_before)


async def _place(db: TeamDb, inbox_id: UUID, thread_id: UUID, cursor: UUID | None) -> MessagePosition | None:
    if cursor is None:
        return None
    found = await queries.place(db, inbox_id, thread_id, cursor)
    if found is None:
        raise NotFound("Email")
    return found
