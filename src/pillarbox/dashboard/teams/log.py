"""The team's log of acts, for those who manage it."""

from __future__ import annotations

from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.teams.current_team import draw_team
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.paging import PAGING, Page, envelope
from pillarbox.people import audit
from pillarbox.people.roles import Right

HERE = "/team/audit"
ROWS = 50


@screen(
    HERE,
    title="audit.title",
    words="audit.words",
    right=Right.MANAGE,
    navigation=NavigationEntry(group="team", order=50, icon="acts"),
    query=PAGING,
)
async def show(visit: Visit) -> Reply[Html]:
    """Show who did what in the team."""
    rows = Page.read(visit.request.query, ROWS)
    found = envelope(await audit.page(visit.db, rows), rows, lambda entry: entry)
    return await draw_team(
        "teams/audit.html",
        visit.request,
        visit.visitor,
        HERE,
        title="audit.title",
        entries=found.data,
        has_more=found.has_more,
        is_first=rows.after is None and rows.before is None,
    )
