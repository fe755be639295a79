"""One page of the links that were followed, or all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

import msgspec

from pillarbox.broadcasts.reports import queries, wire
from pillarbox.broadcasts.reports.copies import MOST, ids_of_copies
from pillarbox.broadcasts.reports.positions import PageWindow
from pillarbox.broadcasts.reports.queries import ClickedUrl, LinkPart
from pillarbox.broadcasts.reports.wire import ClickedLink
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import BEGIN, END, ListOf, Page
from pillarbox.kernel.wire.problems import NotFound

BLOCK: Final = 10_000
"""Links that are read at once of a list that is wanted whole."""

Links = ListOf[ClickedLink] | AsyncIterator[bytes]


async def listed(db: TeamDb, broadcast_id: UUID, page: Page, block: int = BLOCK) -> Links:
    """Return the page that was asked for; a long list that is wanted whole is read in blocks. Not for use in
    a transaction: nobody knows how slowly the pieces are taken."""
    broadcast = await queries.started(db, broadcast_id)
    if broadcast is None:
        raise NotFound("Broadcast")
    ids = ids_of_copies(broadcast)
    if ids is None:
        return ListOf(has_more=False, data=[])
    if page.limit is None:
        return await _whole(db, broadcast_id, ids, page, block)
    part = wire.window(page, MOST)
    found = await queries.links(db, broadcast_id, ids, part)
    if page.before is not None and page.before.int >= found.total:
        return ListOf(has_more=False, data=[])
    part = PageWindow(part.first, min(part.last, found.total))
    return ListOf(has_more=wire.has_more(page, part, found.total), data=_shown(found))


async def _whole(db: TeamDb, broadcast_id: UUID, ids: tuple[UUID, UUID], page: Page, block: int) -> Links:
    first = 0 if page.after is None else page.after.int + 1
    end = MOST if page.before is None else page.before.int
    found = await queries.links(db, broadcast_id, ids, PageWindow(first, min(end, first + block)))
    if page.before is not None and end >= found.total:
        return ListOf(has_more=False, data=[])
    if len(found.rows) < block:
        return ListOf(has_more=False, data=_shown(found))
    return _pieces(db, broadcast_id, ids, found, end, block)


async def _pieces(
    db: TeamDb, broadcast_id: UUID, ids: tuple[UUID, UUID], link_part: LinkPart, end: int, block: int
) -> AsyncIterator[bytes]:
    before = BEGIN
    while link_part.rows:
        yield before + msgspec.json.encode(_shown(link_part))[1:-1]
        before = b","
        first = link_part.rows[-1].place + 1
        link_part = await queries.links(db, broadcast_id, ids, PageWindow(first, min(end, first + block)))
    yield END


def _shown(link_part: LinkPart) -> list[ClickedLink]:
    return list(map(_link, link_part.rows))


def _link(row: ClickedUrl) -> ClickedLink:
    return ClickedLink(
        id=wire.cursor(row.place), url=row.url, clicks=row.clicks, unique_clicks=row.unique_clicks
    )
