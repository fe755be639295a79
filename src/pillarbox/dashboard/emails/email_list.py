"""The list of sent emails, with filters that stand in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pillarbox.dashboard.frame.filter_fields import day_range
from pillarbox.dashboard.frame.layout import choices
from pillarbox.dashboard.frame.paging import ROWS, PageLinks, list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.emails.search.filters import SOURCES, EmailFilter
from pillarbox.emails.search.recent_changes import digest_of_emails
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.timeline.rules import STATES

HERE: Final = "/dashboard/emails"
FILTERS: Final[Mapping[str, str]] = {
    "to": "to",
    "sender": "from",
    "subject": "subject",
    "state": "state",
    "domain": "domain",
    "since": "since",
    "until": "until",
    "tag": "tag",
    "key": "api_key_id",
    "broadcast": "broadcast_id",
    "source": "source",
}
"""Filters of the screen's address, each with its name at the API."""
MORE_FILTERS: Final = ("domain", "tag", "source", "key", "broadcast")
"""Filters that stand behind the others, in a part of the form that opens."""

CHOICES: Final = 100
"""Keys and broadcasts that a select field offers."""


@screen(
    HERE,
    title="emails.title",
    words="emails.words",
    navigation=NavigationEntry(group="email", order=20, icon="mail", keys="e"),
    query={**dict.fromkeys(FILTERS, str), "after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    return await emails_page(visit)


async def emails_page(
    visit: Visit,
    *,
    status: int = 200,
    problem: str | None = None,
    results: Sequence[Mapping[str, Any]] = (),
    done: str = "",
) -> Reply[Html]:
    """Show the list, filtered by the parameters of the address. `results` are those of an act on several
    emails, `done` is the text of those without a problem."""
    given = given_filters(visit)
    digest = await digest_of_emails(visit.db, None)
    if not any(given.values()):
        page = await list_page(visit, "/emails", HERE)
        rows, paging = page.rows, page.paging
    else:
        try:
            rows, paging = await _filtered(visit, given)
        except Invalid as wrong:
            rows, paging, status, problem = [], PageLinks(None, None), 422, wrong.message
    return await visit.draw(
        "emails/list.html",
        status=status,
        problem=problem,
        emails=rows,
        digest=digest,
        paging=paging,
        given=given,
        is_filtered=any(given.values()),
        has_more_filters=any(given[name] for name in MORE_FILTERS),
        states=choices(STATES, "state"),
        sources=choices(SOURCES, "source"),
        keys=await named_choices(visit, "/api-keys", given["key"]),
        broadcasts=await named_choices(visit, "/broadcasts", given["broadcast"]),
        csv=with_query(f"{HERE}/csv", **given),
        results=results,
        done=done,
        key=str(visit.request.id),
    )


def given_filters(visit: Visit) -> dict[str, str | None]:
    """Return the filters of the address."""
    return {name: visit.request.query.text(name) for name in FILTERS}


def recipient_text(text: str | None) -> str | None:
    """Return the recipient to look for as the API names it: a domain has an `@` before it."""
    return f"@{text}" if text and "@" not in text and "." in text else text


def filter_of(given: Mapping[str, str | None]) -> EmailFilter:
    """Return the filter that these texts mean; NotAFilter or Invalid where one of them means nothing."""
    days = day_range(given["since"], given["until"])
    return EmailFilter.parsed(
        to=recipient_text(given["to"]),
        sender=given["sender"],
        subject=given["subject"],
        state=given["state"],
        domain=given["domain"],
        since=days.since,
        until=days.until,
        tag=given["tag"],
        key_id=given["key"],
        broadcast_id=given["broadcast"],
        source=given["source"],
    )


async def named_choices(visit: Visit, path: str, chosen: str | None) -> dict[str, str]:
    """Return the newest things of a list of the API by their ids, for a select field, and the chosen one."""
    listed = (await visit.get(path, shown=False, limit=CHOICES))["data"]
    found = {thing["id"]: str(thing.get("name") or thing["id"]) for thing in listed}
    if chosen and chosen not in found:
        found[chosen] = chosen
    return found


async def _filtered(
    visit: Visit, given: Mapping[str, str | None]
) -> tuple[Sequence[Mapping[str, Any]], PageLinks]:
    days = day_range(given["since"], given["until"])
    asked: dict[str, Any] = {FILTERS[name]: text for name, text in given.items()}
    asked |= {"to": recipient_text(given["to"]), "since": iso(days.since), "until": iso(days.until)}
    page = await visit.get("/emails", **asked, limit=ROWS, after=visit.request.query.text("after"))
    older = with_query(HERE, **given, after=page["next"]) if page["has_more"] else None
    return page["data"], PageLinks(None, older)


def iso(instant: datetime | None) -> str | None:
    """Return an instant as the API takes it."""
    return None if instant is None else iso_style(instant.astimezone(UTC))
