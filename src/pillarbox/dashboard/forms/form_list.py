"""The list of sign-up forms."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.kernel.http.request import Html, Reply

HERE: Final = "/dashboard/forms"


@screen(
    HERE,
    title="forms.title",
    words="forms.words",
    navigation=NavigationEntry(group="audience", order=44, icon="check", keys="f"),
    query={"after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    page = await list_page(visit, "/forms", HERE)
    return await visit.draw("forms/list.html", forms=page.rows, paging=page.paging)
