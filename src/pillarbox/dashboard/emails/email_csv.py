"""The list of sent emails as a CSV file, with the filters of the screen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

import msgspec

from pillarbox.dashboard.emails.email_list import FILTERS, HERE, filter_of, given_filters
from pillarbox.dashboard.frame.csv_file import MEDIA, lines
from pillarbox.dashboard.frame.screens import download
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.emails.search.filters import EmailFilter, FoundEmail, NotAFilter
from pillarbox.emails.search.find import find
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.kernel.wire.problems import Invalid

COLUMNS: Final = ("id", "created_at", "from", "to", "subject", "last_event", "scheduled_at")
MOST_ROWS: Final = 100_000
MOST_PAGES: Final = 2000
"""A page may be empty where little fits; so many are read."""
PAGE_ROWS: Final = 500


@download(f"{HERE}/csv", title="emails.csv", query=dict.fromkeys(FILTERS, str))
async def save_csv(visit: Visit) -> Reply[Html]:
    """Save the emails that fit the filters, newest first and bounded."""
    try:
        email_filter = filter_of(given_filters(visit))
    except NotAFilter as wrong:
        raise Invalid(str(wrong)) from None
    return visit.save("emails.csv", csv_parts(visit.db, email_filter), MEDIA)


async def csv_parts(
    db: TeamDb, email_filter: EmailFilter, limit: int = MOST_ROWS, page_rows: int = PAGE_ROWS
) -> AsyncIterator[bytes]:
    """Yield the file in pieces of a page. No transaction is open while the browser reads."""
    yield lines([list(COLUMNS)])
    after: UUID | None = None
    left = limit
    for _ in range(MOST_PAGES):
        rows = min(left, page_rows)
        page = await find(db.source, db.team_id, email_filter, limit=rows, after=after)
        left -= len(page.emails)
        # An empty piece as well: the time limit of the request begins anew with each.
        yield lines([_cells(email) for email in page.emails])
        if page.following is None or left <= 0:
            return
        after = page.following


def _cells(email: FoundEmail) -> list[str]:
    to = ", ".join(msgspec.json.decode(email.to_list, type=list[str]))
    scheduled = "" if email.scheduled_at is None else iso_style(email.scheduled_at)
    texts = (email.sender, to, email.subject)
    return [
        str(email.id),
        iso_style(email.created_at),
        *texts,
        email.last_event,
        scheduled,
    ]
