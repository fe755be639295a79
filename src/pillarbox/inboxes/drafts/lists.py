"""Pages of unsent drafts (inboxes.md 7.1): what was changed last comes first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from pillarbox.inboxes.drafts import queries
from pillarbox.inboxes.drafts.queries import DraftPosition, ListedDraft
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import DEFAULT, NEWEST, Page
from pillarbox.kernel.wire.problems import NotFound

END: Final = DraftPosition(datetime(9999, 12, 31, tzinfo=UTC), NEWEST)


async def draft_page(db: TeamDb, inbox_id: UUID, page: Page) -> tuple[list[ListedDraft], bool]:
    """Return a page, and whether there is more in its direction; 404 for a cursor that is no unsent draft."""
    cursor = page.after or page.before
    place = END if cursor is None else await queries.place(db, inbox_id, cursor)
    if place is None:
        raise NotFound("Draft")
    limit = page.limit or DEFAULT
    below, above = (None, place) if page.before else (place, None)
    rows = await queries.page(db, inbox_id, below, above, limit + 1)
    return (rows[-limit:] if page.before else rows[:limit]), len(rows) > limit
