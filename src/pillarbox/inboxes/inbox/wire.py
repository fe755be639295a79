"""Shapes of inboxes on the wire (inboxes.md sections 2 and 3); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.inboxes.inbox.addresses import LONGEST_FROM_NAME, LONGEST_NAME
from pillarbox.inboxes.inbox.queries import InboxRow
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.instants import IsoTime
from pillarbox.kernel.wire.problems import Invalid, InvalidField
from pillarbox.kernel.wire.shapes import from_row

# Lengths count without the blanks around, so they are counted by hand.
Name = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": LONGEST_NAME})]
FromName = Annotated[str, Meta(extra_json_schema={"maxLength": LONGEST_FROM_NAME})]


class NewInbox(Struct, kw_only=True):
    """`friendly_name` is the older name of `from_name`."""

    email_address: Annotated[str, Meta(extra={"trimmed": True})]
    name: Annotated[str, Meta(extra_json_schema={"maxLength": LONGEST_NAME})] | None = None
    from_name: FromName | None = None
    friendly_name: FromName | None = None
    forwarding: bool | None = None


class InboxChange(Struct, kw_only=True):
    """At least one of them. An empty `from_name`, or null, clears it."""

    min_properties: ClassVar[int] = 1

    name: Name | UnsetType = UNSET
    from_name: FromName | UnsetType | None = UNSET
    friendly_name: FromName | UnsetType | None = UNSET


class InboxRef(Struct, kw_only=True):
    object: Literal["inbox"]
    id: UUID


class InboxDeleted(Struct, kw_only=True):
    object: Literal["inbox"]
    id: UUID
    deleted: Literal[True]


class InboxItem(Struct, kw_only=True):
    id: UUID
    name: str
    email_address: str
    friendly_name: str | None
    unread: int
    last_received: IsoTime | None
    from_name: str | None
    created_at: IsoTime
    updated_at: IsoTime


class FullInbox(Struct, kw_only=True):
    object: Annotated[str, shown_as(Literal["inbox"])]
    id: UUID
    name: str
    email_address: str
    forwarding_address: str | None
    friendly_name: str | None
    unread: int
    drafts: int
    last_received: IsoTime | None
    domain_id: UUID
    receiving_address: str | None
    from_name: str | None
    created_at: IsoTime
    updated_at: IsoTime


def ref(inbox_id: UUID) -> InboxRef:
    return InboxRef(object="inbox", id=inbox_id)


def item(inbox: InboxRow) -> InboxItem:
    return from_row(InboxItem, inbox, friendly_name=inbox.from_name)


def full(inbox: InboxRow) -> FullInbox:
    return from_row(
        FullInbox,
        inbox,
        object="inbox",
        forwarding_address=inbox.receiving_address,
        friendly_name=inbox.from_name,
    )


def new_from_name(new: NewInbox) -> str | None:
    """Return the name that recipients see, under whichever of its names; None where there is none."""
    given = [name for name in (new.from_name, new.friendly_name) if name is not None]
    return _one(given) or None


def changed_from_name(change: InboxChange) -> str | UnsetType | None:
    """Return the name for recipients in a change: None clears it, UNSET leaves it."""
    given = [name for name in (change.from_name, change.friendly_name) if name is not UNSET]
    return (_one([name or "" for name in given]) or None) if given else UNSET


def refuse_nothing(change: InboxChange) -> None:
    """Raise a 422 for a change without a field that can change."""
    if change.name is UNSET and changed_from_name(change) is UNSET:
        raise Invalid("Use at least one of `name` and `from_name`.")


def _one(given: list[str]) -> str:
    names = {name.strip() for name in given}
    if len(names) > 1:
        raise InvalidField("friendly_name", "It must be the same as `from_name`, or be left out.")
    return names.pop() if names else ""
