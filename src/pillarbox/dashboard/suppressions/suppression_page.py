"""One suppressed address: what put it on the list, and what taking it off does."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.suppressions.suppression_list import HERE
from pillarbox.dashboard.texts import reason_text
from pillarbox.emails.search.suppression_causes import explanation_of
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.people import audit
from pillarbox.people.audit import Act
from pillarbox.suppressions import changes

ADDED_WITHIN: Final = timedelta(seconds=10)
"""Time between the request of a person and the entry that it makes."""

ONE: Final = f"{HERE}/{{suppression_id}}"


@screen(ONE, title="suppression.title", query={"done": str})
async def show(visit: Visit) -> Reply[Html]:
    return await suppression_page(visit)


@act(f"{ONE}/remove", title="suppression.remove", back=HERE)
async def remove(visit: Visit, _: Form) -> Reply[Html]:
    try:
        await visit.delete(f"/suppressions/{visit.request.uuid('suppression_id')}")
    except NotFound:
        raise
    except Problem as problem:
        return await suppression_page(visit, status=problem.status, problem=problem.message)
    return visit.to(HERE, done="suppression_removed")


async def suppression_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the screen of one suppressed address."""
    suppression_id = visit.request.uuid("suppression_id")
    entry = await visit.get(f"/suppressions/{suppression_id}")
    row = await changes.find(visit.db, suppression_id)
    if row is None:
        raise NotFound("Suppression")
    explanation = await explanation_of(visit.db, row)
    added = None
    if row.origin == "manual":
        after, until = row.created_at - ADDED_WITHIN, row.created_at + timedelta(milliseconds=1)
        added = await audit.the_only_one(visit.db, Act.SUPPRESSIONS_ADDED, after, until)
    return await visit.draw(
        "suppressions/one.html",
        status=status,
        problem=problem,
        entry=entry,
        added_by=None if added is None else added.actor,
        here=f"{HERE}/{suppression_id}",
        event=explanation.event,
        email=explanation.email,
        detail=explanation.detail,
        reason=reason_text(explanation.detail.reason),
    )
