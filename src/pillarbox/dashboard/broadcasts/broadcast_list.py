"""The list of broadcasts, and the form that makes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.broadcasts.reports.breakdown_queries import BroadcastSummary
from pillarbox.broadcasts.reports.summaries import digest_of_broadcasts, summaries
from pillarbox.dashboard.broadcasts.content_form import CONTENT_BYTES, ContentForm, content_of
from pillarbox.dashboard.editor.template_list import empty_document
from pillarbox.dashboard.emails.send_form import usual_sender
from pillarbox.dashboard.frame.metrics_periods import metric_range
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.times import instant_of, percent
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

HERE: Final = "/dashboard/broadcasts"
ONE: Final = f"{HERE}/{{broadcast_id}}"
COUNTED: Final = ("sent", "delivered", "unique_opened", "unique_clicked", "bounced", "complained")
DAY: Final = timedelta(days=1)
SAMPLE: Final = (
    '{"segment_id": "…", "from": "Harbor <news@harbor.example>", "subject": "The tides", '
    '"html": "<p>High water at noon</p>"}'
)
"""The body of a broadcast, for a team without one."""

NOTHING_YET: Final = "<p></p>"
"""The HTML of a broadcast until its document is stored."""
MOST_CHOICES: Final = 100
"""Segments and topics that a select field offers."""


class ListedRow(NamedTuple):
    """A broadcast of the list, with its rates as texts."""

    id: str
    name: str
    subject: str
    condition: str
    recipients: int | None
    delivered: str
    opened: str
    clicked: str
    at: str
    scheduled_at: str | None


@screen(
    HERE,
    title="broadcasts.title",
    words="broadcasts.words",
    navigation=NavigationEntry(group="audience", order=40, icon="megaphone", keys="b"),
    query={"after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the broadcasts, newest first, with what became of them."""
    digest = await digest_of_broadcasts(visit.db, None)
    page = await list_page(visit, "/broadcasts", HERE)
    known = await summaries(visit.db, [UUID(row["id"]) for row in page.rows])
    rates = await rates_of(visit, page.rows)
    return await visit.draw(
        "broadcasts/list.html",
        rows=[_row(row, known.get(row["id"]), rates.get(row["id"])) for row in page.rows],
        paging=page.paging,
        digest=digest,
        sample=SAMPLE,
    )


@screen(f"{HERE}/new", title="broadcasts.new", right=Right.USE)
async def new(visit: Visit) -> Reply[Html]:
    """Show the form of a new broadcast."""
    return await new_page(visit, ContentForm(sender=await usual_sender(visit)))


@act(
    HERE,
    title="broadcasts.new",
    back=f"{HERE}/new",
    records=Act.BROADCAST_CREATED,
    limit=CONTENT_BYTES,
)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Make a draft and go on with its audience; without a mail yet, with writing it."""
    given = content_of(form)
    body = {**given.body(), "segment_id": form.get("segment_id") or None}
    is_written = "html" in body or "text" in body
    try:
        answer = await visit.post("/broadcasts", body if is_written else {**body, "html": NOTHING_YET})
        if not is_written:
            await visit.put(f"/broadcasts/{answer['id']}/document", {"document": empty_document("blocks")})
    except Problem as problem:
        return await new_page(visit, given, status=problem.status, problem=problem.message)
    if not is_written:
        return visit.to(f"{HERE}/{answer['id']}/editor", done="broadcast_created")
    return visit.to(with_query(f"{HERE}/{answer['id']}", step="audience", done="broadcast_created"))


async def new_page(
    visit: Visit, given: ContentForm, *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    """Show the form of a new broadcast with what was typed."""
    return await visit.draw(
        "broadcasts/new.html",
        status=status,
        problem=problem,
        here=HERE,
        given=given,
        segments=await choices_of(visit, "/segments"),
    )


async def choices_of(visit: Visit, path: str) -> dict[str, str]:
    """Return the newest segments or topics by their ids, for a select field."""
    listed = (await visit.get(path, shown=False, limit=MOST_CHOICES))["data"]
    return {thing["id"]: str(thing["name"]) for thing in listed}


async def rates_of(visit: Visit, rows: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, int]]:
    """Return what the metrics count of these broadcasts, by their ids."""
    sent = [row for row in rows if row["status"] not in ("draft", "scheduled", "failed")]
    if not sent:
        return {}
    # A node whose clock is ahead may have made one later than now.
    oldest = min(visit.request.at, *(instant_of(row["created_at"]) for row in sent))
    answer = await visit.get(
        "/emails/metrics",
        shown=False,
        broadcast_id=",".join(row["id"] for row in sent),
        dimensions="broadcast",
        metrics=",".join(COUNTED),
        **metric_range(oldest - DAY, visit.request.at + DAY, visit.request.at),
    )
    return {str(row["broadcast_id"]): row for row in answer["data"]}


def name_of(name: str | None, subject: str) -> str:
    """Return what a broadcast is called: its name, else its subject."""
    return name or subject


def _row(
    row: Mapping[str, Any], summary: BroadcastSummary | None, counts: Mapping[str, int] | None
) -> ListedRow:
    subject = summary.subject if summary else ""
    found = counts or dict.fromkeys(COUNTED, 0)
    return ListedRow(
        id=row["id"],
        name=name_of(row["name"], subject),
        subject=subject if row["name"] else "",
        condition=summary.condition if summary else row["status"],
        recipients=summary.recipients if summary else None,
        delivered=percent(found["delivered"], found["sent"]),
        opened=percent(found["unique_opened"], found["delivered"]),
        clicked=percent(found["unique_clicked"], found["delivered"]),
        at=row["sent_at"] or row["created_at"],
        scheduled_at=row["scheduled_at"] if row["status"] == "scheduled" else None,
    )
