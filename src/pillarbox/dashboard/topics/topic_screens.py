"""Topics: the list with its subscribers, making, changing and deleting one."""

from __future__ import annotations

from typing import Any, Final

from pillarbox.dashboard.frame.layout import choices
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right
from pillarbox.topics.subscriber_counts import LONG, SOON, subscriber_counts

HERE: Final = "/dashboard/topics"
NEW: Final = f"{HERE}/new"
ONE: Final = f"{HERE}/{{topic_id}}"
DEFAULTS: Final = ("opt_in", "opt_out")
VISIBILITIES: Final = ("public", "private")
NOTHING_TYPED: Final = {
    "name": "",
    "description": None,
    "default_subscription": "opt_in",
    "visibility": "public",
}


@screen(
    HERE,
    title="topics.title",
    words="topics.words",
    navigation=NavigationEntry(group="audience", order=30, icon="megaphone"),
    query={"after": str, "before": str, "count": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the topics with their subscribers."""
    page = await list_page(visit, "/topics", HERE)
    counts = await subscriber_counts(visit.db, _seconds(visit)) if page.rows else {}
    return await visit.draw(
        "topics/list.html",
        topics=page.rows,
        paging=page.paging,
        counts=None if counts is None else {str(topic_id): count for topic_id, count in counts.items()},
    )


@screen(NEW, title="topics.new", words="topics.new.words", right=Right.USE)
async def new(visit: Visit) -> Reply[Html]:
    """Show the form of a new topic."""
    return await _new_page(visit, NOTHING_TYPED)


@act(NEW, title="topics.new", back=NEW, records=Act.TOPIC_CREATED)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Make a topic."""
    given = _given(form)
    try:
        topic = await visit.post("/topics", given)
    except Problem as problem:
        return await _new_page(visit, given, status=problem.status, problem=problem.message)
    return visit.to(f"{HERE}/{topic['id']}", done="topic_created")


@screen(ONE, title="topic.title", query={"count": str, "done": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show a topic with the form that changes it."""
    return await topic_page(visit)


@act(ONE, title="topic.save", back=HERE, records=Act.TOPIC_CHANGED)
async def change(visit: Visit, form: Form) -> Reply[Html]:
    """Change name, description and visibility."""
    given = {name: value for name, value in _given(form).items() if name != "default_subscription"}
    try:
        await visit.patch(_api(visit), given)
    except Problem as problem:
        return await topic_page(visit, given, status=problem.status, problem=problem.message)
    return visit.to(_here(visit), done="topic_changed")


@act(f"{ONE}/delete", title="topic.delete", back=HERE, records=Act.TOPIC_DELETED)
async def delete(visit: Visit, form: Form) -> Reply[Html]:
    """Delete the topic, if its name was typed."""
    topic = await visit.get(_api(visit))
    if form.get("typed_name").strip() != topic["name"].strip():
        return await topic_page(visit, status=422, problem=t("topic.typed_wrong"))
    await visit.delete(_api(visit))
    return visit.to(HERE, done="topic_deleted")


async def topic_page(
    visit: Visit, typed: dict[str, Any] | None = None, *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    """Show the screen of one topic. `typed` is what a refused form had."""
    topic = await visit.get(_api(visit))
    counts = await subscriber_counts(visit.db, _seconds(visit))
    return await visit.draw(
        "topics/one.html",
        status=status,
        problem=problem,
        topic=topic,
        given={**topic, **(typed or {})},
        here=_here(visit),
        subscribers=None if counts is None else counts.get(visit.request.uuid("topic_id"), 0),
        visibilities=choices(VISIBILITIES, "topics.visibility"),
    )


async def _new_page(
    visit: Visit, given: dict[str, Any], *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    return await visit.draw(
        "topics/new.html",
        status=status,
        problem=problem,
        given=given,
        defaults=choices(DEFAULTS, "topics.default"),
        visibilities=choices(VISIBILITIES, "topics.visibility"),
    )


def _given(form: Form) -> dict[str, Any]:
    """Return the fields of the form as the body of the API."""
    return {
        "name": form.get("name"),
        "description": form.get("description").strip() or None,
        "visibility": form.get("visibility"),
        "default_subscription": form.get("default_subscription"),
    }


def _seconds(visit: Visit) -> float:
    return LONG if visit.request.query.text("count") else SOON


def _api(visit: Visit) -> str:
    return f"/topics/{visit.request.param('topic_id')}"


def _here(visit: Visit) -> str:
    return f"{HERE}/{visit.request.param('topic_id')}"
