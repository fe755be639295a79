"""The team's log of acts, for those who manage it."""

from __future__ import annotations

from pillarbox.dashboard.people.page_visits import page
from pillarbox.dashboard.teams.current_team import draw_team, team_db
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.wire.paging import PAGING, Page, envelope
from pillarbox.people import audit
from pillarbox.people.roles import Right
from pillarbox.people.visitors import Visitor

HERE = "/team/audit"
ROWS = 50


@page("GET", "/team/audit", right=Right.MANAGE, summary="The team's log of acts", query=PAGING)
async def show(request: Request, visitor: Visitor) -> Reply[Html]:
    rows = Page.read(request.query, ROWS)
    found = envelope(await audit.page(team_db(request, visitor), rows), rows, lambda entry: entry)
    return draw_team(
        "teams/audit.html",
        visitor,
        HERE,
        entries=found.data,
        has_more=found.has_more,
        is_first=rows.after is None and rows.before is None,
    )
