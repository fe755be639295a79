"""The latest events of the team with their payloads, and sending one.

An event is kept until it is distributed, or while it failed, and then with the runs that it started. One that
nothing listened to is gone.
"""

from __future__ import annotations

from typing import Any, Final

from pillarbox.automations.overview import views
from pillarbox.dashboard.events.event_list import HERE
from pillarbox.dashboard.frame.json_text import indented_text, parsed
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.events import latest
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.kernel.wire.problems import Problem
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

LATEST: Final = f"{HERE}/latest"
SEND: Final = f"{HERE}/send"
SHOWN: Final = 40
PAYLOAD_SHOWN: Final = 1500
PAYLOAD_READ: Final = 4 * PAYLOAD_SHOWN
"""Characters of a payload that a list shows, and that it reads of the database."""

LARGEST_FORM: Final = 400 * 1024
NAMES: Final = 100


@screen(LATEST, title="events.latest", words="events.latest.words", query={"name": str, "done": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show the latest events, of one name or of all."""
    name = visit.request.query.text("name")
    return await visit.draw("events/latest.html", name=name or "", events=await latest_of(visit, name, SHOWN))


@screen(SEND, title="event.send", words="event.send.words", right=Right.USE, query={"name": str, "to": str})
async def send_form(visit: Visit) -> Reply[Html]:
    """Show the form that sends an event."""
    query = visit.request.query
    to = query.text("to") or visit.visitor.email
    return await _send_page(visit, {"name": query.text("name") or "", "to": to, "payload": ""})


@act(SEND, title="event.send", back=SEND, records=Act.EVENT_SENT, limit=LARGEST_FORM)
async def send(visit: Visit, form: Form) -> Reply[Html]:
    """Send an event of a contact, by its address or id."""
    given = {name: form.get(name) for name in ("name", "to", "payload")}
    try:
        payload = await parsed(given["payload"]) if given["payload"].strip() else {}
    except ValueError:
        return await _send_page(visit, given, status=422, problem=t("event.no_json"))
    to = given["to"].strip()
    whom = {"contact_id": to} if well_formed(to) else {"email": to}
    try:
        visit.acts_on(given["name"].strip(), to=to)
        await visit.post("/events/send", {"event": given["name"].strip(), **whom, "payload": payload})
    except Problem as problem:
        return await _send_page(visit, given, status=problem.status, problem=problem.message)
    return visit.to(with_query(LATEST, name=given["name"].strip(), done="event_sent"))


async def latest_of(visit: Visit, name: str | None, limit: int) -> list[dict[str, Any]]:
    """Return the latest events of a name or of all, the newest first."""
    found = {
        event.id: {
            "name": event.name,
            "email": event.email,
            "at": event.at,
            "state": "failed" if event.failed_at else "waiting",
            "reason": event.reason,
            "payload": event.payload,
            "run": None,
        }
        for event in await latest.stored_events(visit.db, name, limit, PAYLOAD_READ)
    }
    for started in await views.starting_events(visit.db, name, limit, PAYLOAD_READ):
        found[started.id] = {
            "name": started.name,
            "email": started.email,
            "at": started.at,
            "state": "started",
            "reason": None,
            "payload": started.payload,
            "run": f"/dashboard/automations/{started.automation_id}/runs/{started.run_id}",
        }
    newest = sorted(found.items(), reverse=True)[:limit]
    return [_shown(event) for _, event in newest]


def _shown(event: dict[str, Any]) -> dict[str, Any]:
    text = indented_text(event["payload"])
    is_cut = len(text) > PAYLOAD_SHOWN
    return {
        **event,
        "at": iso_style(event["at"]),
        "payload": text[:PAYLOAD_SHOWN] + ("…" if is_cut else ""),
        "has_payload": event["payload"] != "{}",
    }


async def _send_page(
    visit: Visit, given: dict[str, str], *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    events = (await visit.get("/events", shown=False, limit=NAMES))["data"]
    chosen = next((event for event in events if event["name"] == given["name"]), None)
    return await visit.draw(
        "events/send.html",
        status=status,
        problem=problem,
        given=given,
        names=[event["name"] for event in events],
        schema=(chosen["schema"] if chosen else None) or {},
    )
