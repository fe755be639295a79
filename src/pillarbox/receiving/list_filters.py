"""The filters of `GET /emails/receiving`, an extension (receiving.md section 2).

Received mail has no search blocks (docs/decisions/0177): a page compares at most `MOST_READ` emails, newest
first, and the next one goes on behind them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.ids import first_id
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import parse_instant
from pillarbox.kernel.wire.paging import DEFAULT, NEWEST, OLDEST, Page
from pillarbox.kernel.wire.problems import Invalid, InvalidParameter
from pillarbox.kernel.wire.query import Query
from pillarbox.receiving import queries
from pillarbox.receiving.queries import ReceivedEmailListRow

FILTERS: Final[dict[str, Any]] = {"from": str, "to": str, "subject": str, "since": str, "until": str}
"""The parameters with their types."""

LONGEST: Final = 1000
"""Characters of one filter."""

MOST_READ: Final = 5000
"""Emails that one page compares."""


class ReceivedFilter(NamedTuple):
    """The conditions on a received email, of which all that are not None must hold.

    `sender` is a part of From, `to` an address that it arrived for or `@` and a domain, `words` are parts of
    the subject; all in lower case. `since` is the first instant of arrival, `until` the first that is too
    late.
    """

    sender: str | None
    to: str | None
    words: tuple[str, ...]
    since: datetime | None
    until: datetime | None

    @property
    def lower(self) -> UUID:
        """The first id that is old enough."""
        return OLDEST if self.since is None else first_id(self.since)

    @property
    def upper(self) -> UUID:
        """The first id that is too late."""
        return NEWEST if self.until is None else first_id(self.until)


class ReceivedPage(NamedTuple):
    """Emails that fit, newest first. `following` is the cursor of the next page, None at the end. A page may
    have fewer emails than asked for, or none, and still have a next one."""

    emails: list[ReceivedEmailListRow]
    following: UUID | None


def filter_of(query: Query) -> ReceivedFilter | None:
    """Return the filter that a request names, None where it names none; raises Invalid for what means
    nothing."""
    given = {name: text for name in FILTERS if (text := query.text(name)) is not None}
    if not given:
        return None
    for name, text in given.items():
        if len(text) > LONGEST:
            raise InvalidParameter(name, f"Use at most {LONGEST} characters.")
    for name in ("before", "message_id"):
        if query.text(name):
            raise Invalid(f"Filters cannot be used with `{name}`.")
    sender, to = given.get("from"), given.get("to")
    return ReceivedFilter(
        sender=None if sender is None else sender.strip().lower(),
        to=None if to is None else to.strip().lower(),
        words=tuple(given.get("subject", "").lower().split()),
        since=_instant("since", given.get("since")),
        until=_instant("until", given.get("until")),
    )


async def find(db: TeamDb, conditions: ReceivedFilter, page: Page) -> ReceivedPage:
    """Return a page of the emails that fit."""
    limit = page.limit or DEFAULT
    upper = min(page.after or NEWEST, conditions.upper)
    end = await queries.id_behind(db, upper, conditions.lower, MOST_READ)
    rows = await queries.fitting(
        db,
        upper,
        conditions.lower if end is None else end,
        (conditions.sender, conditions.to, list(conditions.words)),
        limit + 1,
    )
    if len(rows) > limit:
        return ReceivedPage(rows[:limit], rows[limit - 1].id)
    return ReceivedPage(rows, end)


def _instant(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return parse_instant(text, date_only=True)
    except ValueError:
        raise InvalidParameter(name, "Use a date or an ISO 8601 time.") from None
