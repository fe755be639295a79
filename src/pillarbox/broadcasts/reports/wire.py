"""Shapes of the reports (broadcasts.md section 4); field order is the contract's."""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Final, NamedTuple
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.broadcasts.reports.positions import PageWindow
from pillarbox.kernel.http.schemas import RequiredParameter, one_of
from pillarbox.kernel.wire.paging import DEFAULT, Page, paging
from pillarbox.kernel.wire.problems import Invalid, InvalidParameter, MissingParameter
from pillarbox.kernel.wire.query import Query

TYPES: Final = (
    *("sent", "delivered", "opened", "clicked"),
    *("bounced", "complained", "unsubscribed", "suppressed"),
)
BOUNCES: Final = {
    "permanent": "bounced_permanent",
    "transient": "bounced_transient",
    "undetermined": "bounced_undetermined",
}
"""Types of bounces as they are asked for, and what the metrics call them."""
MOST_FILTER: Final = 254

_OFFSET = re.compile(r"offset:(0|[1-9][0-9]{0,14})", re.ASCII)
_ALPHABET = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)

Cursor = Annotated[str, Meta(description="The id of a row of the list.")]
LINK_PARAMETERS = paging(Cursor)
RECIPIENT_PARAMETERS = {
    "type": RequiredParameter(Annotated[str, one_of(TYPES)]),
    "email": Annotated[str, Meta(max_length=MOST_FILTER)],
    "bounce_type": Annotated[str, one_of(tuple(BOUNCES))],
    **LINK_PARAMETERS,
}


class LinkClicks(Struct, kw_only=True):
    url: str
    clicks: int


class ReportRow(Struct, kw_only=True):
    id: str
    contact_id: UUID | None
    email: str
    count: int | UnsetType = UNSET
    bounce_type: Annotated[str, one_of(tuple(BOUNCES))] | UnsetType = UNSET
    clicked_links: list[LinkClicks] | UnsetType = UNSET


class ClickedLink(Struct, kw_only=True):
    id: str
    url: str
    clicks: int
    unique_clicks: int


class RecipientsAsked(NamedTuple):
    """Which recipients are wanted: of which type, whose address has `email` in it, and which part of the
    list."""

    type: str
    email: str | None
    bounce_type: str | None
    page: Page


def asked(query: Query) -> RecipientsAsked:
    """Return the parsed query of a list of recipients; a 422 names the parameter that is wrong."""
    if query.last("type") is None:
        raise MissingParameter("type")
    kind = query.choice("type", *TYPES) or ""
    email = query.text("email")
    if email is not None and len(email) > MOST_FILTER:
        raise InvalidParameter("email", f"Use at most {MOST_FILTER} characters.")
    bounce_type = query.choice("bounce_type", *BOUNCES)
    if bounce_type is not None and kind != "bounced":
        raise Invalid("The `bounce_type` parameter can only be used with the `bounced` type.")
    return RecipientsAsked(kind, email, bounce_type, page(query))


def page(query: Query, default: int | None = DEFAULT) -> Page:
    """Return the part of a list that the query asks for; cursors are offsets. With `default` None a list
    without `limit` is whole."""
    return Page.read(query, default, _position)


def cursor(position: int) -> str:
    """Return the id of the row at a position."""
    return urlsafe_b64encode(f"offset:{position}".encode()).decode().rstrip("=")


def _position(text: str) -> UUID | None:
    """Return the position as the number of an id, which is what pages are made of; None where it is no
    cursor."""
    if not _ALPHABET.fullmatch(text):
        return None
    try:
        found = _OFFSET.fullmatch(urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii"))
    except (binascii.Error, UnicodeDecodeError):
        return None
    return None if found is None else page_cursor(int(found[1]))


def page_cursor(position: int) -> UUID:
    """Return a position as pages have cursors."""
    return UUID(int=position)


def window(page: Page, total: int) -> PageWindow:
    """Return the positions of a page in a list of so many rows; none where its cursor lies behind the end."""
    size = page.limit or 0
    if page.before is not None:
        last = page.before.int
        return PageWindow(max(0, last - size), last) if last < total else PageWindow(total, total)
    first = 0 if page.after is None else page.after.int + 1
    return PageWindow(min(first, total), min(first + size, total))


def has_more(page: Page, part: PageWindow, total: int) -> bool:
    """Return whether there are rows beyond the page in the direction travelled."""
    if part.first == part.last:
        return False
    return part.first > 0 if page.before is not None else part.last < total
