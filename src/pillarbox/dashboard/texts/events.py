"""Texts of the screens of events that a team sends."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "events.title": "Events",
    "events.words": "custom events, triggers, schema, track",
    "events.defined": "Defined",
    "events.latest": "Latest events",
    "events.latest.words": "payloads, event log",
    "events.latest.note": "An event is kept until it is distributed, and then with the runs that it "
    "started. One that nothing listens to is gone.",
    "events.none": "No event is defined",
    "events.none.text": "Your program sends events about contacts, and automations begin with them. An "
    "event need not be defined; a definition holds its payload to a schema.",
    "events.none_latest": "No events",
    "events.none_latest.text": "Nothing waits, nothing failed, and no run was started lately.",
    "event.title": "Event",
    "event.name": "Name",
    "event.schema": "Schema",
    "event.schema.hint": "`key: type` on each line, with a type of {kinds}. Empty: any payload.",
    "event.starts": "Starts",
    "event.starts_none": "no enabled automation",
    "event.payload": "Payload",
    "event.payload.hint": "A JSON object, or nothing.",
    "event.accepted": "Accepted",
    "event.state.waiting": "Waiting",
    "event.state.failed": "Failed",
    "event.state.started": "Started a run",
    "event.new": "Define an event",
    "event.new.words": "add an event, schema",
    "event.new.lead": "The payloads of events with this name are held to the schema when they are sent.",
    "event.no_line": "Write key: type on each line: {line}",
    "event.change": "Save the schema",
    "event.conflict.text": "The schema was changed while you worked on it. Yours is still here, and not "
    "stored.",
    "event.delete": "Delete",
    "event.delete.title": "Delete this definition?",
    "event.delete.text": "Events of the name are sent and listened to as before, without a schema.",
    "event.send": "Send an event",
    "event.send.words": "trigger an automation, try out",
    "event.send.lead": "Something happened to a contact: enabled automations that begin with the event "
    "run for it, for real.",
    "event.to": "Contact",
    "event.to.hint": "An address, or the id of a contact. A new address becomes a contact when something "
    "begins for it.",
    "event.no_json": "The payload is no JSON.",
    "done.event_defined": "The event is defined.",
    "done.event_changed": "The schema is saved. It counts for events from now on.",
    "done.event_deleted": "The definition is deleted.",
    "done.event_sent": "The event is accepted. What listens to it begins within a second.",
}
