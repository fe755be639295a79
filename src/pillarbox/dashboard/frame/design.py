"""Pages about the screens themselves: every part with an example, and the keyboard shortcuts."""

from __future__ import annotations

from pillarbox.dashboard.frame import charts
from pillarbox.dashboard.frame.paging import PageLinks
from pillarbox.dashboard.frame.screen_table import ScreenTable
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.tones import TONES
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply


@screen("/design", title="design.title", for_operators=True, query={"done": str})
async def design(visit: Visit) -> Reply[Html]:
    """Show every part of the layout."""
    days = [f"2026-10-{day:02d}" for day in range(1, 15)]
    delivered = [120, 135, 90, 160, 170, 60, 40, 150, 180, 175, 190, 210, 80, 55]
    bounced = [3, 2, 1, 4, 2, 0, 1, 6, 3, 2, 4, 2, 1, 0]
    series = [
        charts.Series(t("metric.delivered"), delivered, "tone-1"),
        charts.Series(t("metric.bounced"), bounced, "tone-2"),
    ]
    return await visit.draw(
        "frame/design.html",
        states=list(TONES),
        line=charts.lines("Emails over time", "Day", days, series),
        bar=charts.bars("Emails per day", "Day", days, series),
        funnel=charts.funnel(
            "From sent to clicked",
            "Step",
            [("Sent", 1200), ("Delivered", 1180), ("Opened", 610), ("Clicked", 92)],
        ),
        spark=charts.sparkline("Deliveries of two weeks", delivered),
        pages=PageLinks("/design?before=a", "/design?after=b"),
    )


@screen("/dashboard/keys", title="keys.help.title")
async def shortcuts(visit: Visit) -> Reply[Html]:
    """List the keyboard shortcuts."""
    screens = visit.request.use(ScreenTable).visible_to(visit.visitor)
    keys = [
        (entry.navigation.keys, t(entry.title))
        for entry in screens
        if entry.navigation and entry.navigation.keys
    ]
    return await visit.draw("frame/keys.html", keys=keys)
