"""Captured mail as JSON, for other people's test suites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast

import msgspec
from msgspec import Meta

from pillarbox.capture import access, message, wire
from pillarbox.capture.access import CaptureAccess
from pillarbox.capture.arrivals import Filters
from pillarbox.capture.queries import CapturedRow
from pillarbox.capture.reading import Reader
from pillarbox.capture.store import Capture
from pillarbox.kernel.http.request import Reply, Request, encode
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page
from pillarbox.kernel.wire.problems import InvalidParameter
from pillarbox.kernel.wire.query import Query
from pillarbox.receiving.retention import ReceivedRetention

LONGEST_WAIT = 60
WAIT_REASON = f"Use a number of seconds from 0 to {LONGEST_WAIT}."

MOST_BYTES = 8 * 1024 * 1024
"""Raw bytes of one page; it ends early, with `has_more`, where its mails are large."""


@route(
    "GET",
    "/capture.json",
    needs=Access.PUBLIC,
    query={
        **PAGING,
        "to": str,
        "from": str,
        "subject": str,
        "wait": Annotated[int, Meta(ge=0, le=LONGEST_WAIT)],
    },
    problems=(403, 422),
    summary="List captured mail, or wait for one (route capture only)",
)
async def list_captured(request: Request) -> Reply[ListOf[wire.ShownCapture]]:
    """List mails by recipient (`to`), sender (`from`) and `subject`; wait up to `wait` seconds for the first
    that fits."""
    request.use(CaptureAccess).admit(request)
    page = Page.read(request.query)
    filters = filters_of(request.query)
    rows = await request.use(Capture).arrivals.wait(filters, page, seconds_of(request.query))
    shown, more = rows_that_fit(rows, page)
    reader, origin = request.use(Reader), access.origin(request)
    data = [await _item(reader, row, origin, request) for row in shown]
    return Reply(cast(ListOf[wire.ShownCapture], ListOf(has_more=more, data=data)))


@route(
    "GET",
    "/capture.json/{captured_id}",
    needs=Access.PUBLIC,
    problems=(403, 404, 422),
    summary="Retrieve a captured mail (route capture only)",
)
async def retrieve_captured(request: Request) -> Reply[wire.ShownCapture]:
    request.use(CaptureAccess).admit(request)
    reader = request.use(Reader)
    row = await reader.row(request.uuid("captured_id"))
    return Reply(await _item(reader, row, access.origin(request), request))


@route(
    "DELETE",
    "/capture.json",
    needs=Access.PUBLIC,
    problems=(403, 422),
    summary="Remove all captured mail (route capture only)",
)
async def clear_captured(request: Request) -> Reply[wire.ClearedCount]:
    """Delete captured mail, and with `received=true` received mail as well."""
    request.use(CaptureAccess).admit_change(request)
    received = request.query.boolean("received")
    deleted = await request.use(Capture).clear()
    if received:
        deleted += await request.use(ReceivedRetention).clear()
    return Reply(wire.ClearedCount(deleted=deleted))


async def _item(reader: Reader, row: CapturedRow, origin: str, request: Request) -> msgspec.Raw:
    """Return one mail, encoded in the thread that has read it."""

    def made(raw: bytes) -> msgspec.Raw:
        return msgspec.Raw(encode(wire.captured(row, message.read(raw), origin)))

    return await reader.read(row, made, request.is_client_gone)


def filters_of(query: Query) -> Filters:
    """Return the filters of the JSON list."""
    return Filters(to=query.text("to"), sender=query.text("from"), subject=query.text("subject"))


def seconds_of(query: Query) -> int:
    """Return for how many seconds the query wants to wait for a mail."""
    seconds = query.integer("wait", WAIT_REASON) or 0
    if seconds > LONGEST_WAIT:
        raise InvalidParameter("wait", WAIT_REASON)
    return seconds


def rows_that_fit(rows: Sequence[CapturedRow], page: Page) -> tuple[list[CapturedRow], bool]:
    """Return the mails of the page that fit one answer, newest first, and whether there are more."""
    limit = page.limit or len(rows)
    kept: list[CapturedRow] = []
    octets = 0
    for row in rows[:limit]:
        octets += row.size
        if kept and octets > MOST_BYTES:
            break
        kept.append(row)
    more = len(kept) < len(rows)
    if page.before:
        kept.reverse()
    return kept, more
