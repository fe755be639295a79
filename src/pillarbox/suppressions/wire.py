"""Shapes of the endpoints of suppressions (suppressions.md sections 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress
from pillarbox.kernel.wire.fields import parse_value, read_by
from pillarbox.kernel.wire.instants import IsoTime
from pillarbox.kernel.wire.problems import Invalid, InvalidField, MissingField
from pillarbox.kernel.wire.shapes import from_row
from pillarbox.suppressions.addresses import listed_address
from pillarbox.suppressions.changes import Origin
from pillarbox.suppressions.queries import SuppressionRow

MOST: Final = 100
"""Addresses or ids of one batch."""

SUPPRESSION: Final = {"suppression": Annotated[str, Meta(description="The id of the entry, or its address.")]}
"""The type of the path parameter."""


def _email(value: Any, path: str) -> EmailAddress:
    return _address(parse_value(str, value, path), path)


def _address(text: str, path: str) -> EmailAddress:
    try:
        return listed_address(text)
    except NotAnAddress as wrong:
        raise InvalidField(path, wrong.reason) from None


def _addresses(value: Any, path: str) -> list[EmailAddress]:
    """Return the addresses of a batch; the first that is none is named by its index."""
    texts = parse_value(Texts, value, path)
    return [_address(text, f"{path}[{index}]") for index, text in enumerate(texts)]


Texts = Annotated[list[str], Meta(min_length=1, max_length=MOST)]
Email = Annotated[EmailAddress, shown_as(str), read_by(_email)]
Emails = Annotated[list[EmailAddress], shown_as(Texts), read_by(_addresses)]
Ids = Annotated[list[UUID], Meta(min_length=1, max_length=MOST)]


class NewSuppression(Struct, kw_only=True):
    email: Email


class NewSuppressions(Struct, kw_only=True):
    emails: Emails


class Removal(Struct, kw_only=True):
    """Exactly one of the two."""

    min_properties: ClassVar[int] = 1

    emails: Emails | UnsetType = UNSET
    ids: Ids | UnsetType = UNSET

    @staticmethod
    def check_body(body: Mapping[str, Any]) -> None:
        given = [name for name in ("emails", "ids") if name in body]
        if all(body[name] is None for name in given):
            raise MissingField("emails` or `ids")
        if len(given) > 1:
            raise Invalid("Use either `emails` or `ids`, not both.")

    def named(self) -> list[UUID | str]:
        """Return the addresses, in the form in which they are compared, or the ids to take off the list."""
        if self.emails is not UNSET:
            return [address.address for address in self.emails]
        return [] if self.ids is UNSET else list(self.ids)


class Suppression(Struct, kw_only=True):
    object: Literal["suppression"]
    id: UUID
    email: str
    origin: Origin
    source_id: UUID | None
    created_at: IsoTime


class SuppressionItem(Struct, kw_only=True):
    id: UUID
    email: str
    origin: Origin
    source_id: UUID | None
    created_at: IsoTime


class SuppressionRef(Struct, kw_only=True):
    object: Literal["suppression"]
    id: UUID


class SuppressionDeleted(Struct, kw_only=True):
    object: Literal["suppression"]
    id: UUID
    deleted: Literal[True]


class SuppressionRefs(Struct, kw_only=True):
    data: list[SuppressionRef]


class SuppressionsDeleted(Struct, kw_only=True):
    data: list[SuppressionDeleted]


def suppression(entry: SuppressionRow) -> Suppression:
    return from_row(Suppression, entry, object="suppression", email=entry.shown)


def item(entry: SuppressionRow) -> SuppressionItem:
    return from_row(SuppressionItem, entry, email=entry.shown)


def ref(entry_id: UUID) -> SuppressionRef:
    return SuppressionRef(object="suppression", id=entry_id)


def deleted(entry: SuppressionRow) -> SuppressionDeleted:
    return SuppressionDeleted(object="suppression", id=entry.id, deleted=True)
