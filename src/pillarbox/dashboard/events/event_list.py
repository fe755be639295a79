"""The list of defined events, and the form of a new one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pillarbox.automations.overview import views
from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.events import latest
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

HERE: Final = "/dashboard/events"
NEW: Final = f"{HERE}/new"
KINDS: Final = ("string", "number", "boolean", "date")

_LINE: Final = re.compile(r"(.+?)\s*[:=]\s*(\w+)")


SAMPLE: Final = """curl "$API/events/send" -H "Authorization: Bearer $RESEND_API_KEY" \\
  -d '{"event": "user.signed_up", "email": "ada@quay.example", "payload": {"plan": "pro"}}'"""
"""The call that sends an event, shown where none is defined."""


class SchemaLineError(ValueError):
    """A line that says no key with its type."""


@screen(
    HERE,
    title="events.title",
    words="events.words",
    navigation=NavigationEntry(group="audience", order=60, icon="event", keys="v"),
    query={"after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the events that are defined."""
    page = await list_page(visit, "/events", HERE)
    names = [row["name"] for row in page.rows]
    counts = await latest.counts(visit.db)
    return await visit.draw(
        "events/list.html",
        events=page.rows,
        paging=page.paging,
        listeners=await views.listeners_of(visit.db, names) if names else {},
        counts=counts,
        is_part=sum(count.waiting + count.failed for count in counts.values()) >= latest.COUNTED,
        sample=SAMPLE,
    )


@screen(NEW, title="event.new", words="event.new.words", right=Right.USE, query={"name": str})
async def new(visit: Visit) -> Reply[Html]:
    """Show the form of a new definition."""
    return await _form_page(visit, visit.request.query.text("name") or "", "")


@act(NEW, title="event.new", back=NEW, records=Act.EVENT_DEFINED)
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Define an event."""
    name, text = form.get("name"), form.get("schema")
    try:
        visit.acts_on(None, name=name.strip())
        answer = await visit.post("/events", {"name": name.strip(), "schema": schema_of(text)})
    except SchemaLineError as line:
        problem = t("event.no_line", line=str(line))
        return await _form_page(visit, name, text, status=422, problem=problem)
    except Problem as refused:
        return await _form_page(visit, name, text, status=refused.status, problem=refused.message)
    return visit.to(f"{HERE}/{answer['id']}", done="event_defined")


def schema_of(text: str) -> dict[str, str] | None:
    """Return the schema of lines `key: type`; None where there are none."""
    schema = {}
    for line in text.splitlines():
        if line.strip():
            parts = _LINE.fullmatch(line.strip())
            if parts is None:
                raise SchemaLineError(line.strip()[:80])
            schema[parts[1]] = parts[2]
    return schema or None


def schema_lines(schema: Mapping[str, str] | None) -> str:
    """Return a line for each key of a schema."""
    return "\n".join(f"{key}: {kind}" for key, kind in (schema or {}).items())


async def _form_page(
    visit: Visit, name: str, schema: str, *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    return await visit.draw(
        "events/new.html", status=status, problem=problem, name=name, schema=schema, kinds=KINDS
    )
