"""The list of automations, with how many runs of each are in which state."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pillarbox.automations.overview import views
from pillarbox.automations.wire import STATUSES
from pillarbox.dashboard.automations.recipes import recipe_names
from pillarbox.dashboard.frame.layout import choices
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.kernel.http.request import Html, Reply

HERE: Final = "/dashboard/automations"


@screen(
    HERE,
    title="automations.title",
    words="automations.words",
    navigation=NavigationEntry(group="audience", order=50, icon="flow", keys="a"),
    query={"status": str, "after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the automations of the team."""
    status = visit.request.query.text("status")
    status = status if status in STATUSES else None
    digest = await views.digest_of_automations(visit.db, None)
    page = await list_page(visit, "/automations", HERE, status=status)
    ids = [UUID(row["id"]) for row in page.rows]
    counts = await views.run_counts(visit.db, ids) if ids else {}
    return await visit.draw(
        "automations/list.html",
        digest=digest,
        automations=page.rows,
        paging=page.paging,
        counts={str(key): found for key, found in counts.items()},
        limit=views.MOST_COUNTED,
        only=status or "",
        statuses=choices(STATUSES, "state"),
        recipes=await recipe_names(),
    )
