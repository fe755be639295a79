"""The list of received emails."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry, ScreenTable
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.kernel.http.request import Html, Reply

HERE: Final = "/dashboard/emails/receiving"


@screen(
    HERE,
    title="received.title",
    words="received.words",
    navigation=NavigationEntry(group="email", order=22, icon="received", keys="r"),
    query={"after": str, "before": str},
)
async def index(visit: Visit) -> Reply[Html]:
    page = await list_page(visit, "/emails/receiving", HERE)
    url = visit.request.use(ScreenTable).public_url
    return await visit.draw(
        "emails/received_list.html",
        emails=page.rows,
        paging=page.paging,
        here=HERE,
        receiving_domain=receiving_domain(url),
    )


def receiving_domain(url: str) -> str:
    """Return the call that makes a domain which receives, for curl; `url` is the base URL."""
    return "\n".join(
        [
            f"curl -X POST '{url.rstrip('/')}/domains' \\",
            '  -H "Authorization: Bearer $RESEND_API_KEY" \\',
            """  -d '{"name": "your-domain.example", "capabilities": {"receiving": "enabled"}}'""",
        ]
    )
