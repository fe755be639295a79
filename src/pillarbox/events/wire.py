"""Shapes of the endpoints of events (events.md sections 1 and 2); field order is the contract's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from pillarbox.contacts.wire import address_of
from pillarbox.events.definition_queries import EventDefinitionRow
from pillarbox.events.definitions import MOST_NAME, event_name
from pillarbox.events.payloads import Kind, encoded
from pillarbox.events.sending import SentEvent
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.fields import parse, read_by
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.problems import Invalid, MissingField, Problem, at_index
from pillarbox.kernel.wire.shapes import from_row

MOST_TOGETHER: Final = 100

Name = Annotated[str, Meta(max_length=MOST_NAME, extra={"trimmed": True})]
Schema = Annotated[dict[str, Kind], Meta(max_length=100)]
AnyJson = Annotated[Any, Meta(extra_json_schema={"description": "Any JSON."})]
ShownSchema = Annotated[Raw, shown_as(dict[str, Kind] | None)]


class NewDefinition(Struct, kw_only=True):
    name: Name
    schema: Schema | None = None


class ChangedDefinition(Struct, kw_only=True):
    """Null takes the schema away. The name stays what it is."""

    must_be_given: ClassVar[tuple[str, ...]] = ("schema",)

    schema: Schema | UnsetType | None = UNSET


class NewEvent(Struct, kw_only=True):
    """Exactly one of `contact_id` and `email` says whom it happened to."""

    event: Name
    contact_id: UUID | None = None
    email: str | None = None
    payload: dict[str, AnyJson] | None = None

    def sent(self) -> SentEvent:
        """Return the event; raises where the fields do not fit together."""
        name = event_name(self.event, "event")
        if self.contact_id is not None and self.email is not None:
            raise Invalid("Use either `contact_id` or `email`, not both.")
        if self.contact_id is None and self.email is None:
            raise MissingField("contact_id` or `email")
        address = None if self.email is None else address_of(self.email)
        payload = self.payload or {}
        return SentEvent(
            name=name, contact_id=self.contact_id, address=address, payload=payload, text=encoded(payload)
        )


def _events(body: Any, _: str) -> list[SentEvent]:
    """Return the events of a body, which is one or an array of them; the first that is none is named by its
    index."""
    if not isinstance(body, list):
        return [parse(NewEvent, body).sent()]
    if not 1 <= len(body) <= MOST_TOGETHER:
        raise Invalid(f"Invalid batch. Use an array of 1 to {MOST_TOGETHER} events.")
    found = []
    for index, one in enumerate(body):
        try:
            found.append(parse(NewEvent, one).sent())
        except Problem as problem:
            raise at_index(index, problem) from None
    return found


Several = Annotated[list[NewEvent], Meta(min_length=1, max_length=MOST_TOGETHER)]
NewEvents = Annotated[list[SentEvent], shown_as(NewEvent | Several), read_by(_events)]


class EventsEventRef(Struct, kw_only=True):
    object: Literal["event"]
    id: UUID


class EventDeleted(Struct, kw_only=True):
    object: Literal["event"]
    id: UUID
    deleted: Literal[True]


class EventDefinition(Struct, kw_only=True):
    object: Literal["event"]
    id: UUID
    name: str
    schema: ShownSchema
    created_at: DatabaseTime
    updated_at: DatabaseTime


class EventsEventItem(Struct, kw_only=True):
    id: UUID
    name: str
    schema: ShownSchema
    created_at: DatabaseTime
    updated_at: DatabaseTime


class EventSent(Struct, kw_only=True):
    object: Literal["event"]
    event: str


class EventsSent(Struct, kw_only=True):
    data: list[EventSent]


def item(definition: EventDefinitionRow) -> EventsEventItem:
    return from_row(EventsEventItem, definition, schema=_schema(definition))


def full(definition: EventDefinitionRow) -> EventDefinition:
    return from_row(EventDefinition, definition, object="event", schema=_schema(definition))


def sent(events: Sequence[SentEvent], *, is_array: bool) -> EventSent | EventsSent:
    """Return the answer for these events."""
    shown = [EventSent(object="event", event=event.name) for event in events]
    return EventsSent(data=shown) if is_array else shown[0]


def _schema(definition: EventDefinitionRow) -> Raw:
    return Raw((definition.schema or "null").encode())
