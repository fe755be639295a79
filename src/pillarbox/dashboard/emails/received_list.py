"""The list of received emails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pillarbox.dashboard.emails.email_list import iso, recipient_text
from pillarbox.dashboard.frame.filter_fields import day_range
from pillarbox.dashboard.frame.paging import ROWS, PageLinks, list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry, ScreenTable
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Invalid

HERE: Final = "/dashboard/emails/receiving"
FILTERS: Final[Mapping[str, str]] = {
    "sender": "from",
    "to": "to",
    "subject": "subject",
    "since": "since",
    "until": "until",
}
"""Filters of the screen's address, each with its name at the API."""


@screen(
    HERE,
    title="received.title",
    words="received.words",
    navigation=NavigationEntry(group="email", order=22, icon="received", keys="r"),
    query={**dict.fromkeys(FILTERS, str), "after": str, "before": str},
)
async def index(visit: Visit) -> Reply[Html]:
    given = {name: visit.request.query.text(name) for name in FILTERS}
    status, problem = 200, None
    if not any(given.values()):
        page = await list_page(visit, "/emails/receiving", HERE)
        rows, paging = page.rows, page.paging
    else:
        try:
            rows, paging = await _filtered(visit, given)
        except Invalid as wrong:
            rows, paging, status, problem = [], PageLinks(None, None), 422, wrong.message
    url = visit.request.use(ScreenTable).public_url
    return await visit.draw(
        "emails/received_list.html",
        status=status,
        problem=problem,
        emails=rows,
        paging=paging,
        given=given,
        is_filtered=any(given.values()),
        here=HERE,
        receiving_domain=receiving_domain(url),
    )


async def _filtered(
    visit: Visit, given: Mapping[str, str | None]
) -> tuple[Sequence[Mapping[str, Any]], PageLinks]:
    days = day_range(given["since"], given["until"])
    asked: dict[str, Any] = {FILTERS[name]: text for name, text in given.items()}
    asked |= {"to": recipient_text(given["to"]), "since": iso(days.since), "until": iso(days.until)}
    page = await visit.get("/emails/receiving", **asked, limit=ROWS, after=visit.request.query.text("after"))
    older = with_query(HERE, **given, after=page["next"]) if page["has_more"] else None
    return page["data"], PageLinks(None, older)


def receiving_domain(url: str) -> str:
    """Return the call that makes a domain which receives, for curl; `url` is the base URL."""
    return "\n".join(
        [
            f"curl -X POST '{url.rstrip('/')}/domains' \\",
            '  -H "Authorization: Bearer $RESEND_API_KEY" \\',
            """  -d '{"name": "your-domain.example", "capabilities": {"receiving": "enabled"}}'""",
        ]
    )
