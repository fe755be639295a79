"""The filters of `GET /emails`, an extension (docs/decisions/0177)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from pillarbox.emails.search.filters import SOURCES, EmailFilter, NotAFilter
from pillarbox.kernel.wire.instants import parse_instant
from pillarbox.kernel.wire.problems import Invalid, InvalidParameter
from pillarbox.kernel.wire.query import Query

FILTERS: Final[dict[str, Any]] = {
    "to": str,
    "from": str,
    "subject": str,
    "state": str,
    "domain": str,
    "since": str,
    "until": str,
    "tag": str,
    "api_key_id": UUID,
    "broadcast_id": UUID,
    "source": Literal["api", "smtp", "broadcast", "automation", "inbox"],
    "message_id": str,
}
"""The parameters with their types."""

LONGEST: Final = 1000
"""Characters of one filter."""


def filter_of(query: Query) -> EmailFilter | None:
    """Return the filter that a request names, None where it names none; raises Invalid for what means
    nothing."""
    query.choice("source", *SOURCES)
    given = {name: text for name in FILTERS if (text := query.text(name)) is not None}
    if not given:
        return None
    for name, text in given.items():
        if len(text) > LONGEST:
            raise InvalidParameter(name, f"Use at most {LONGEST} characters.")
    if query.text("before"):
        raise Invalid("Filters cannot be used with `before`. Use `after`.")
    try:
        return EmailFilter.parsed(
            to=given.get("to"),
            sender=given.get("from"),
            subject=given.get("subject"),
            state=given.get("state"),
            domain=given.get("domain"),
            since=_instant("since", given.get("since")),
            until=_instant("until", given.get("until")),
            tag=given.get("tag"),
            key_id=given.get("api_key_id"),
            broadcast_id=given.get("broadcast_id"),
            source=given.get("source"),
            message_id=given.get("message_id"),
        )
    except NotAFilter as wrong:
        raise Invalid(str(wrong)) from None


def _instant(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return parse_instant(text, date_only=True)
    except ValueError:
        raise InvalidParameter(name, "Use a date or an ISO 8601 time.") from None
