"""One page of the recipients that something happened to.

A large list is read by time: the metrics say in which moments the rows of the page lie, and only their
history is read. A list of a small broadcast, one that is filtered by address, and a page whose rows are
spread over many moments are made of all copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.broadcasts.reports import queries, wire
from pillarbox.broadcasts.reports.copies import FOREVER, MOST, ids_of_copies
from pillarbox.broadcasts.reports.positions import (
    DAY,
    QUARTER,
    TEN_SECONDS,
    PageWindow,
    RowSpan,
    inside,
    spans,
)
from pillarbox.broadcasts.reports.queries import RecipientReportRow, ReportedBroadcast
from pillarbox.broadcasts.reports.wire import BOUNCES, LinkClicks, RecipientsAsked, ReportRow
from pillarbox.kernel.ids import EPOCH
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import ListOf
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.metrics.read import fine_quarters, purged_before

FEW_COPIES: Final = 5_000
"""Of so many, all are looked at."""
MANY_QUARTERS: Final = 8
"""A page that is spread over more quarter hours is made of all copies."""
READ_BY_TIME: Final = ("delivered",)
"""Of what a copy has no column for, looking at all copies means to read the history of each."""
LEVELS: Final = {TEN_SECONDS: 0, QUARTER: 1, DAY: 3}


class ReportPage(NamedTuple):
    rows: Sequence[RecipientReportRow]
    has_more: bool


EVER: Final = RowSpan(EPOCH, FOREVER, 0, 0)
NOTHING: Final = ReportPage((), has_more=False)


async def listed(
    pool: asyncpg.Pool, team_id: UUID, broadcast_id: UUID, asked: RecipientsAsked, few: int = FEW_COPIES
) -> ListOf[ReportRow]:
    """Return the page that was asked for."""
    async with pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        db = TeamDb(conn, team_id)
        broadcast = await queries.started(db, broadcast_id)
        if broadcast is None:
            raise NotFound("Broadcast")
        found = await _page(db, broadcast_id, broadcast, asked, few)
        rows = await _shown(db, asked.type, found.rows)
    return ListOf(has_more=found.has_more, data=rows)


async def _page(
    db: TeamDb, broadcast_id: UUID, broadcast: ReportedBroadcast, asked: RecipientsAsked, few: int
) -> ReportPage:
    ids = ids_of_copies(broadcast)
    if ids is None or broadcast.queued_at is None:
        return NOTHING
    purged = await purged_before(db)
    is_thinned = purged is not None and purged > broadcast.queued_at
    if asked.email is not None or (broadcast.copies or 0) <= few or is_thinned:
        return await _by_copies(db, broadcast_id, ids, asked)
    name = asked.type if asked.bounce_type is None else BOUNCES[asked.bounce_type]
    begin = broadcast.queued_at.replace(hour=0, minute=0, second=0, microsecond=0)
    days = await queries.counted(db, broadcast_id, LEVELS[DAY], DAY, (begin - DAY, FOREVER), name)
    total = sum(rows for _, rows in days)
    part = wire.window(asked.page, total)
    if part.first == part.last:
        return NOTHING
    found = await _quarters(db, broadcast_id, spans(days, DAY, part), name, part)
    bounce = None if asked.bounce_type is None else asked.bounce_type.capitalize()
    if len(found) > MANY_QUARTERS and asked.type not in READ_BY_TIME:
        within = RowSpan(found[0].start, found[-1].end, found[0].base, 0)
        rows, _ = await queries.by_copies(db, broadcast_id, asked.type, ids, None, part, bounce, within)
    else:
        found = await _divided(db, broadcast_id, found, name, part)
        rows = await queries.by_time(db, broadcast_id, asked.type, found, part, bounce)
    return ReportPage(rows, wire.has_more(asked.page, part, total))


async def _quarters(
    db: TeamDb, broadcast_id: UUID, days: Sequence[RowSpan], name: str, part: PageWindow
) -> list[RowSpan]:
    bounds = days[0].start, days[-1].end
    counted = await queries.counted(db, broadcast_id, LEVELS[QUARTER], QUARTER, bounds, name)
    return inside(days, counted, QUARTER, part)


async def _divided(
    db: TeamDb, broadcast_id: UUID, quarters: Sequence[RowSpan], name: str, part: PageWindow
) -> list[RowSpan]:
    """Return the quarter hours, and instead of those that have rollups of ten seconds these."""
    divisible = await fine_quarters(db, [span.start for span in quarters])
    shorter: list[RowSpan] = []
    for span in quarters:
        if span.start not in divisible:
            shorter.append(span)
            continue
        bounds = span.start, span.end
        counted = await queries.counted(db, broadcast_id, LEVELS[TEN_SECONDS], TEN_SECONDS, bounds, name)
        shorter += spans(counted, TEN_SECONDS, part, span.base)
    return shorter


async def _by_copies(
    db: TeamDb, broadcast_id: UUID, ids: tuple[UUID, UUID], asked: RecipientsAsked
) -> ReportPage:
    # How many rows there are is known with them: one of them is enough.
    part = wire.window(asked.page, MOST)
    email = None if asked.email is None else asked.email.lower()
    bounce = None if asked.bounce_type is None else asked.bounce_type.capitalize()
    found = await queries.by_copies(db, broadcast_id, asked.type, ids, email, part, bounce, EVER)
    if asked.page.before is not None and asked.page.before.int >= found.total:
        return NOTHING
    part = PageWindow(part.first, min(part.last, found.total))
    return ReportPage(found.rows, wire.has_more(asked.page, part, found.total))


async def _shown(db: TeamDb, kind: str, rows: Sequence[RecipientReportRow]) -> list[ReportRow]:
    made = [ReportRow(id=wire.cursor(row.place), contact_id=row.contact_id, email=row.email) for row in rows]
    ids = [row.email_id for row in rows]
    if kind == "bounced":
        for row, shown in zip(rows, made, strict=True):
            shown.bounce_type = (row.bounce_type or "Undetermined").lower()
    elif kind == "opened" and rows:
        opens = await queries.opens(db, ids)
        for row, shown in zip(rows, made, strict=True):
            shown.count = opens.get(row.email_id, 1)
    elif kind == "clicked" and rows:
        links = await _links(db, ids)
        for row, shown in zip(rows, made, strict=True):
            shown.clicked_links = links.get(row.email_id, [])
            shown.count = sum(link.clicks for link in shown.clicked_links)
    return made


async def _links(db: TeamDb, ids: Sequence[UUID]) -> dict[UUID, list[LinkClicks]]:
    found = sorted(await queries.clicks(db, ids), key=lambda one: one.email_id)
    return {
        email_id: [LinkClicks(url=one.url, clicks=one.clicks) for one in clicked]
        for email_id, clicked in groupby(found, key=lambda one: one.email_id)
    }
