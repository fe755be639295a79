"""Pages of the messages of a thread (inboxes.md 6.1): the oldest first, so `after` goes to the newer ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from pillarbox.inboxes.messages import queries
from pillarbox.inboxes.messages.queries import MessagePosition, StoredMessage
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import DEFAULT, OLDEST, Page
from pillarbox.kernel.wire.problems import NotFound

BEGINNING: Final = MessagePosition(datetime(1, 1, 1, tzinfo=UTC), OLDEST)


async def message_page(
    db: TeamDb, inbox_id: UUID, thread_id: UUID, page: Page
) -> tuple[list[StoredMessage], bool]:
    """A page of a thread, and whether there is more in its direction; 404 for a thread that the inbox does
    not have, and a cursor that is no message of the thread."""
    if not await queries.has_thread(db, inbox_id, thread_id):
        raise NotFound("Thread")
    after = await _place(db, inbox_id, thread_id, page.after)
    before = await _place(db, inbox_id, thread_id, page.before)
    limit = page.limit or DEFAULT
    start = BEGINNING if after is None and before is None else after
    rows = await queries.page(db, inbox_id, thread_id, start, before, limit + 1)
    more = len(rows) > limit
    return (rows[-limit:] if before else rows[:limit]), more


async def _place(db: TeamDb, inbox_id: UUID, thread_id: UUID, cursor: UUID | None) -> MessagePosition | None:
    if cursor is None:
        return None
    found = await queries.place(db, inbox_id, thread_id, cursor)
    if found is None:
        raise NotFound("Email")
    return found
