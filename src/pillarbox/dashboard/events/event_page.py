"""One defined event: its schema, who listens, and the latest of its name with their payloads."""

from __future__ import annotations

from typing import Any, Final

from pillarbox.automations.overview import views
from pillarbox.dashboard.events.event_list import HERE, KINDS, SchemaLineError, schema_lines, schema_of
from pillarbox.dashboard.events.latest_events import latest_of
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.people.audit import Act

ONE: Final = f"{HERE}/{{definition_id}}"
LATEST: Final = 20


@screen(ONE, title="event.title", query={"done": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show the screen of one event."""
    return await event_page(visit)


@act(f"{ONE}/schema", title="event.change", back=HERE, records=Act.EVENT_CHANGED)
async def change(visit: Visit, form: Form) -> Reply[Html]:
    """Replace the schema, unless somebody has changed it since the form was shown."""
    text = form.get("schema")
    event = await _event(visit)
    if form.get("base") != event["updated_at"] and form.get("do") != "overwrite":
        return await event_page(visit, typed=text, status=409, is_conflict=True)
    visit.acts_on(event["id"], name=event["name"])
    try:
        await visit.patch(_api(visit), {"schema": schema_of(text)})
    except SchemaLineError as line:
        return await event_page(visit, typed=text, status=422, problem=t("event.no_line", line=str(line)))
    except Problem as problem:
        return await event_page(visit, typed=text, status=problem.status, problem=problem.message)
    return visit.to(f"{HERE}/{event['id']}", done="event_changed")


@act(f"{ONE}/delete", title="event.delete", back=HERE, records=Act.EVENT_DELETED)
async def delete(visit: Visit, _: Form) -> Reply[Html]:
    """Remove the definition; events of the name go on."""
    event = await _event(visit)
    visit.acts_on(event["id"], name=event["name"])
    await visit.delete(_api(visit))
    return visit.to(HERE, done="event_deleted")


async def event_page(
    visit: Visit,
    *,
    typed: str | None = None,
    status: int = 200,
    problem: str | None = None,
    is_conflict: bool = False,
) -> Reply[Html]:
    """Show one event, with what was typed as its schema."""
    event = await _event(visit)
    listeners = await views.listeners_of(visit.db, [event["name"]])
    return await visit.draw(
        "events/one.html",
        status=status,
        problem=problem,
        event=event,
        here=f"{HERE}/{event['id']}",
        schema=typed if typed is not None else schema_lines(event["schema"]),
        is_open=typed is not None,
        is_conflict=is_conflict,
        kinds=KINDS,
        listeners=listeners[event["name"]],
        events=await latest_of(visit, event["name"], LATEST),
    )


async def _event(visit: Visit) -> Any:
    event = await visit.get(_api(visit))
    if event["id"] != str(visit.request.uuid("definition_id")):
        raise NotFound("Event")
    return event


def _api(visit: Visit) -> str:
    return f"/events/{visit.request.uuid('definition_id')}"
