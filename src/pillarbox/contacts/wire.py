"""Shapes of the contacts endpoints (contacts.md 1 to 3); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from pillarbox.contact_properties.definitions import MOST
from pillarbox.contacts.change import MOST_LISTED, ContactChange, ContactMemberships, Subscription
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.kernel.wire.fields import parse, read_by
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.problems import InvalidField, MissingField, NotAUuid, Problem
from pillarbox.kernel.wire.uuids import well_formed

LONGEST_NAME: Final = 255

Name = Annotated[str, Meta(extra_json_schema={"description": "At most 255 characters, blanks around aside."})]
Given = Annotated[Any, Meta(extra_json_schema={"type": ["string", "number", "boolean", "null"]})]
GivenValues = Annotated[dict[str, Given], Meta(max_length=MOST)]
"""The value of each property, by its key; null clears it."""


class ContactsSegmentRef(Struct, kw_only=True):
    id: UUID


class TopicChoice(Struct, kw_only=True):
    id: UUID
    subscription: Subscription


AtMost = Meta(max_length=MOST_LISTED)
Segments = Annotated[list[Any], shown_as(Annotated[list[ContactsSegmentRef | UUID], AtMost]), AtMost]
Topics = Annotated[list[Any], shown_as(Annotated[list[TopicChoice], AtMost]), AtMost]
SomeTopics = Annotated[list[TopicChoice], Meta(min_length=1, max_length=MOST_LISTED)]


class MembersOfContact(Struct, kw_only=True):
    """What belongs to the contact itself, wherever it is made."""

    email: str
    first_name: Name | None = None
    last_name: Name | None = None
    unsubscribed: bool | None = None
    properties: GivenValues | None = None


class NewContact(MembersOfContact, kw_only=True):
    """Of an address that is known, only what is given changes."""

    segments: Segments | None = None
    topics: Topics | None = None
    audience_id: UUID | None = None


class ChangedContact(Struct, kw_only=True):
    """`email` may only be the address that the contact has."""

    first_name: Name | UnsetType | None = UNSET
    last_name: Name | UnsetType | None = UNSET
    unsubscribed: bool | UnsetType = UNSET
    properties: GivenValues | UnsetType = UNSET
    email: str | UnsetType = UNSET


Choices = dict[UUID, Subscription]
"""The choices by topic; the last choice of a topic counts."""


def choices(items: list[Any]) -> Choices:
    read = [_choice_of(item) for item in items]
    return {one.id: one.subscription for one in read}


def _choice_of(item: Any) -> TopicChoice:
    if not isinstance(item, dict):
        raise InvalidField("topics", "Each item must be an object with `id` and `subscription`.")
    return parse(TopicChoice, item)


def _some_choices(value: Any, path: str) -> Choices:
    if not isinstance(value, list):
        raise InvalidField(path, "It must be an array.")
    if not 1 <= len(value) <= MOST_LISTED:
        raise InvalidField(path, f"Use 1 to {MOST_LISTED} items.")
    return choices(value)


class ChosenTopics(Struct, kw_only=True):
    """The longer form of a list of choices."""

    topics: Annotated[Choices, shown_as(SomeTopics), read_by(_some_choices, empty=True)]


def _chosen(body: Any, _: str) -> Choices:
    """Return a list, or an object that has it under `topics`."""
    return parse(ChosenTopics, body).topics if isinstance(body, dict) else _some_choices(body, "topics")


ChangedTopics = Annotated[Choices, shown_as(SomeTopics | ChosenTopics), read_by(_chosen)]


class ContactRef(Struct, kw_only=True):
    object: Literal["contact"]
    id: UUID


class ContactItem(Struct, kw_only=True):
    id: UUID
    email: str
    first_name: str | None
    last_name: str | None
    created_at: DatabaseTime
    unsubscribed: bool


class ContactList(Struct, kw_only=True):
    """A page of contacts. `next` is there where a filter was given and more may fit: the value for
    `after`."""

    object: Literal["list"] = "list"
    has_more: bool
    data: list[ContactItem]
    next: UUID | UnsetType = UNSET


class ContactCount(Struct, kw_only=True):
    """Numbers of contacts that fit a filter; `subscribed` is without those that are unsubscribed."""

    object: Literal["contact_count"]
    count: int
    subscribed: int


class PropertyOfContact(Struct, kw_only=True):
    value: str | float | bool
    type: Literal["string", "number", "boolean"]


class FullContact(Struct, kw_only=True):
    object: Literal["contact"]
    id: UUID
    email: str
    first_name: str | None
    last_name: str | None
    created_at: DatabaseTime
    unsubscribed: bool
    properties: Annotated[Raw, shown_as(dict[str, PropertyOfContact])]


class DeletedContact(Struct, kw_only=True):
    object: Literal["contact"]
    id: UUID
    contact: UUID
    deleted: Literal[True]


class ContactsSegmentItem(Struct, kw_only=True):
    id: UUID
    name: str
    created_at: DatabaseTime


class JoinedSegment(Struct, kw_only=True):
    """The id of the segment."""

    id: UUID


class LeftSegment(Struct, kw_only=True):
    """The id of the segment."""

    id: UUID
    deleted: Literal[True]


class ContactsTopicItem(Struct, kw_only=True):
    id: UUID
    name: str
    description: str | None
    subscription: Subscription


class ChosenRef(Struct, kw_only=True):
    """The id of the contact."""

    id: UUID


class Contradiction(Problem):
    """Members of one body that exclude each other."""

    status, name = 422, "invalid_parameter"


# What is given ------------------------------------------------------------------------------------


def address_of(text: str) -> EmailAddress:
    """Return the address of a new contact."""
    if not text.strip():
        raise MissingField("email")
    try:
        return email_address(text)
    except NotAnAddress as wrong:
        raise InvalidField("email", wrong.reason) from None


def members_of(new: MembersOfContact) -> ContactChange:
    """Return the fields of a new contact, or the change of an existing one. Null is the same as absent."""
    return ContactChange(
        first_name=UNSET if new.first_name is None else _name(new.first_name, "first_name"),
        last_name=UNSET if new.last_name is None else _name(new.last_name, "last_name"),
        unsubscribed=UNSET if new.unsubscribed is None else new.unsubscribed,
        properties=new.properties or {},
    )


def belonging_of(new: NewContact) -> ContactMemberships:
    """Return the segments that a new contact is added to, and what it chooses of topics; the last choice of a
    topic counts."""
    if new.audience_id is not None and (new.segments is not None or new.topics is not None):
        raise Contradiction("Use either `audience_id` or `segments` and `topics`, not both.")
    named = [segment_of(item) for item in new.segments or ()]
    if new.audience_id is not None:
        named = [new.audience_id]
    return ContactMemberships(list(dict.fromkeys(named)), choices(new.topics or []))


def change_of(changed: ChangedContact) -> ContactChange:
    """Return the change of a contact; null and "" clear a name."""
    return ContactChange(
        first_name=_new_name(changed.first_name, "first_name"),
        last_name=_new_name(changed.last_name, "last_name"),
        unsubscribed=changed.unsubscribed,
        properties={} if isinstance(changed.properties, UnsetType) else changed.properties,
    )


def refuse_new_address(changed: ChangedContact, address: str) -> None:
    """Raise a 422 for an address other than that of the contact, in the form in which addresses are
    compared."""
    if isinstance(changed.email, UnsetType):
        return
    try:
        same = email_address(changed.email).address == address
    except NotAnAddress:
        same = False
    if not same:
        raise InvalidField("email", "The address of a contact cannot be changed.")


def segment_of(item: Any) -> UUID:
    if isinstance(item, dict):
        return parse(ContactsSegmentRef, item).id
    if not isinstance(item, str):
        raise InvalidField("segments", "Each item must be an id, or an object with `id`.")
    if not well_formed(item):
        raise NotAUuid("id")
    return UUID(item)


def _new_name(value: str | UnsetType | None, field: str) -> str | UnsetType | None:
    return _name(value, field) if isinstance(value, str) else value


def _name(value: str, field: str) -> str | None:
    """Return a name without blanks around it; None for one that is empty then."""
    value = value.strip()
    if len(value) > LONGEST_NAME:
        raise InvalidField(field, f"Use at most {LONGEST_NAME} characters.")
    return value or None
