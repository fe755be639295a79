"""The list of sent emails, with filters that stand in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from pillarbox.dashboard.frame.filter_fields import cursor_of, day_range
from pillarbox.dashboard.frame.layout import choices
from pillarbox.dashboard.frame.paging import ROWS, PageLinks, list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.emails.search.filters import EmailFilter, FoundEmail, NotAFilter
from pillarbox.emails.search.find import find
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Invalid, Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.timeline.rules import STATES

HERE: Final = "/dashboard/emails"
FILTERS: Final = ("to", "sender", "subject", "state", "domain", "since", "until")
MOST_CHOSEN: Final = 100


@screen(
    HERE,
    title="emails.title",
    words="emails.words",
    navigation=NavigationEntry(group="email", order=20, icon="mail", keys="e"),
    query={**dict.fromkeys(FILTERS, str), "after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    return await emails_page(visit)


@act(f"{HERE}/cancel", title="emails.cancel", back=HERE)
async def cancel(visit: Visit, form: Form) -> Reply[Html]:
    """Cancel the chosen scheduled emails; the others are left alone."""
    for email_id in chosen(form):
        try:
            await visit.post(f"/emails/{email_id}/cancel")
        except Problem as problem:
            return await emails_page(visit, status=problem.status, problem=problem.message)
    return visit.to(HERE, done="emails_canceled")


def chosen(form: Form) -> list[str]:
    """Return the ids that a form of a list has chosen."""
    return [value for value in form.every("id")[:MOST_CHOSEN] if well_formed(value)]


async def emails_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the list, filtered by the parameters of the address."""
    given = given_filters(visit)
    if not any(given.values()):
        page = await list_page(visit, "/emails", HERE)
        rows, paging = page.rows, page.paging
    else:
        try:
            rows, paging = await _filtered(visit, given)
        except (NotAFilter, Invalid) as wrong:
            rows, paging, status, problem = [], PageLinks(None, None), 422, str(wrong)
    return await visit.draw(
        "emails/list.html",
        status=status,
        problem=problem,
        emails=rows,
        paging=paging,
        given=given,
        is_filtered=any(given.values()),
        states=choices(STATES, "state"),
        csv=with_query(f"{HERE}/csv", **given),
    )


def given_filters(visit: Visit) -> dict[str, str | None]:
    """Return the filters of the address."""
    return {name: visit.request.query.text(name) for name in FILTERS}


def filter_of(given: Mapping[str, str | None]) -> EmailFilter:
    """Return the filter that these texts mean; NotAFilter or Invalid where one of them means nothing."""
    days = day_range(given["since"], given["until"])
    return EmailFilter.parsed(
        to=given["to"],
        sender=given["sender"],
        subject=given["subject"],
        state=given["state"],
        domain=given["domain"],
        since=days.since,
        until=days.until,
    )


async def _filtered(visit: Visit, given: dict[str, str | None]) -> tuple[Sequence[dict[str, Any]], PageLinks]:
    email_filter = filter_of(given)
    db = visit.db
    page = await find(db.source, db.team_id, email_filter, limit=ROWS, after=cursor_of(visit))
    older = with_query(HERE, **given, after=str(page.following)) if page.following else None
    return [_row(email) for email in page.emails], PageLinks(None, older)


def _row(email: FoundEmail) -> dict[str, Any]:
    """Return the email as the API shows it in a list, as far as the screen needs it."""
    return {
        "id": str(email.id),
        "from": email.sender,
        "to": msgspec.json.decode(email.to_list),
        "subject": email.subject,
        "created_at": email.created_at,
        "last_event": email.last_event,
        "scheduled_at": email.scheduled_at,
    }
