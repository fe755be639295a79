"""The log of requests, with filters that stand in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pillarbox.dashboard.frame.filter_fields import cursor_of, day_range
from pillarbox.dashboard.frame.paging import ROWS, PageLinks, list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.texts import t
from pillarbox.emails.search.filters import NotAFilter
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.logs.filtering import METHODS, STATUSES, LogFilter, find_logs
from pillarbox.logs.policy import LogPolicy

HERE: Final = "/dashboard/logs"
FILTERS: Final = ("method", "status", "path", "agent", "since", "until")


@screen(
    HERE,
    title="logs.title",
    words="logs.words",
    navigation=NavigationEntry(group="email", order=60, icon="log", keys="l"),
    query={**dict.fromkeys(FILTERS, str), "after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the requests of programs of the team."""
    given = {name: visit.request.query.text(name) for name in FILTERS}
    status, problem = 200, None
    rows: Sequence[Mapping[str, Any]] = []
    if not any(given.values()):
        page = await list_page(visit, "/logs", HERE)
        rows, paging = page.rows, page.paging
    else:
        try:
            rows, paging = await _filtered(visit, given)
        except NotAFilter as wrong:
            paging, status, problem = PageLinks(None, None), 422, str(wrong)
    return await visit.draw(
        "logs/list.html",
        status=status,
        problem=problem,
        logs=rows,
        paging=paging,
        given=given,
        is_filtered=any(given.values()),
        methods={name: name for name in METHODS},
        statuses={name: t(f"logs.status.{name}") for name in STATUSES},
        tone=status_tone,
    )


def status_tone(status: int) -> str:
    """Return the tone of an HTTP status."""
    return "good" if status < 400 else "warn" if status < 500 else "bad"


async def _filtered(
    visit: Visit, given: Mapping[str, str | None]
) -> tuple[Sequence[Mapping[str, Any]], PageLinks]:
    days = day_range(given["since"], given["until"])
    log_filter = LogFilter(
        method=given["method"],
        status=given["status"],
        path=given["path"],
        agent=given["agent"],
        since=days.since,
        until=days.until,
    )
    policy = visit.request.use(LogPolicy)
    oldest = policy.oldest(policy.days_of(visit.visitor.caller()), visit.request.at)
    found = await find_logs(visit.db, log_filter, oldest=oldest, after=cursor_of(visit), limit=ROWS)
    older = with_query(HERE, **given, after=str(found.following)) if found.following else None
    return [row._asdict() for row in found.rows], PageLinks(None, older)
