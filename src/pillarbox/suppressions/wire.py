"""Shapes of the endpoints of suppressions (suppressions.md sections 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.kernel.wire.problems import Invalid, InvalidField, MissingField
from pillarbox.suppressions.addresses import listed_address
from pillarbox.suppressions.changes import Origin
from pillarbox.suppressions.queries import SuppressionRow

MOST: Final = 100
"""Addresses or ids of one batch."""

SUPPRESSION: Final = {"suppression": Annotated[str, Meta(description="The id of the entry, or its address.")]}
"""The type of the path parameter."""

Emails = Annotated[list[str], Meta(min_length=1, max_length=MOST)]
Ids = Annotated[list[UUID], Meta(min_length=1, max_length=MOST)]


class NewSuppression(Struct):
    email: str


class NewSuppressions(Struct):
    emails: Emails


class Removal(Struct):
    """Exactly one of the two."""

    min_properties: ClassVar[int] = 1

    emails: Emails | UnsetType = UNSET
    ids: Ids | UnsetType = UNSET


class Suppression(Struct):
    object: Literal["suppression"]
    id: UUID
    email: str
    origin: Origin
    source_id: UUID | None
    created_at: IsoTime


class SuppressionItem(Struct):
    id: UUID
    email: str
    origin: Origin
    source_id: UUID | None
    created_at: IsoTime


class SuppressionRef(Struct):
    object: Literal["suppression"]
    id: UUID


class SuppressionDeleted(Struct):
    object: Literal["suppression"]
    id: UUID
    deleted: Literal[True]


class SuppressionRefs(Struct):
    data: list[SuppressionRef]


class SuppressionsDeleted(Struct):
    data: list[SuppressionDeleted]


def one_address(body: Any) -> EmailAddress:
    """The address that is to be added."""
    return _address(parse(NewSuppression, body).email, "email")


def addresses(body: Any) -> list[EmailAddress]:
    """The addresses of a batch; the first that is none is named by its index."""
    return _addresses(parse(NewSuppressions, body).emails)


def removal(body: Any) -> list[UUID | str]:
    """What a batch takes off the list: compared addresses, or ids."""
    given = [name for name in ("emails", "ids") if isinstance(body, dict) and name in body]
    if isinstance(body, dict) and all(body[name] is None for name in given):
        raise MissingField("emails` or `ids")
    if len(given) > 1:
        raise Invalid("Use either `emails` or `ids`, not both.")
    wanted = parse(Removal, body)
    if wanted.emails is not UNSET:
        return [address.address for address in _addresses(wanted.emails)]
    return [] if wanted.ids is UNSET else list(wanted.ids)


def suppression(entry: SuppressionRow) -> Suppression:
    origin: Any = entry.origin
    return Suppression(
        "suppression", entry.id, entry.shown, origin, entry.source_id, iso_style(entry.created_at)
    )


def item(entry: SuppressionRow) -> SuppressionItem:
    origin: Any = entry.origin
    return SuppressionItem(entry.id, entry.shown, origin, entry.source_id, iso_style(entry.created_at))


def ref(entry_id: UUID) -> SuppressionRef:
    return SuppressionRef("suppression", entry_id)


def deleted(entry: SuppressionRow) -> SuppressionDeleted:
    return SuppressionDeleted("suppression", entry.id, True)


def _addresses(texts: Sequence[str]) -> list[EmailAddress]:
    return [_address(text, f"emails[{index}]") for index, text in enumerate(texts)]


def _address(text: str, field: str) -> EmailAddress:
    try:
        return listed_address(text)
    except NotAnAddress as wrong:
        raise InvalidField(field, wrong.reason) from None
