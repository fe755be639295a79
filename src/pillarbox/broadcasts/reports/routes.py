"""HTTP routes of the reports (broadcasts.md section 4)."""

from __future__ import annotations

import asyncpg

from pillarbox.broadcasts.reports import clicked_links, recipients, wire
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import ListOf


@route(
    "GET",
    "/broadcasts/{broadcast_id}/recipients",
    needs=Access.FULL,
    query=wire.RECIPIENT_PARAMETERS,
    summary="List the recipients of a broadcast that something happened to",
)
async def report(request: Request, db: TeamDb) -> Reply[ListOf[wire.ReportRow]]:
    broadcast_id = request.uuid("broadcast_id")
    asked = wire.asked(request.query)
    return Reply(await recipients.listed(request.use(asyncpg.Pool), db.team_id, broadcast_id, asked))


@route(
    "GET",
    "/broadcasts/{broadcast_id}/clicked-links",
    needs=Access.FULL,
    query=wire.LINK_PARAMETERS,
    summary="List the links of a broadcast that were followed",
)
async def links(request: Request, db: TeamDb) -> Reply[ListOf[wire.ClickedLink]]:
    broadcast_id = request.uuid("broadcast_id")
    page = wire.page(request.query, default=None)
    return Reply(await clicked_links.listed(db, broadcast_id, page))
