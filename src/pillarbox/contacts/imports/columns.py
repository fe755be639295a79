"""Which column of a file feeds which field (contact-imports.md 1.1, 1.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Struct

from pillarbox.contacts.imports.cells import PROPERTY_TYPES
from pillarbox.kernel.wire.fields import parse_value, read_before, read_by, word_reader
from pillarbox.kernel.wire.problems import Invalid, InvalidField

EMAIL: Final = "email"
FIELDS: Final = (EMAIL, "first_name", "last_name", "unsubscribed")


@dataclass(frozen=True, slots=True)
class MappedProperty:
    """The header text of a property's column, and the type of its values."""

    column: str
    type: str


@dataclass(frozen=True, slots=True)
class HeaderMap:
    """Header texts by field. Where `is_given` is False the columns that are named like the fields are read,
    those of them that are there."""

    fields: Mapping[str, str]
    properties: Mapping[str, MappedProperty] = field(default_factory=dict)
    is_given: bool = True


@dataclass(frozen=True, slots=True)
class ColumnPositions:
    """Positions of columns in a record: of the fields by name, of the properties by key."""

    fields: Mapping[str, int]
    properties: Mapping[str, tuple[int, str]]


DEFAULT_MAP: Final = HeaderMap({name: name for name in FIELDS}, is_given=False)


def _column(value: Any, path: str) -> str:
    text: str = parse_value(str, value, path).strip()
    if not text:
        raise InvalidField(path, "It must not be empty.")
    return text


Column = Annotated[str, read_by(_column)]
PropertyType = Literal["string", "number", "boolean"]


class PropertyColumn(Struct):
    """The header text of a property's column."""

    missing_first: ClassVar = True

    column: Annotated[str, read_by(_column, empty=True)]
    type: Annotated[PropertyType, read_by(word_reader(tuple(PROPERTY_TYPES))), read_before("column")] = (
        "string"
    )


class ColumnMap(Struct):
    """Header texts of the file by field."""

    email: Column = EMAIL
    first_name: Column | None = None
    last_name: Column | None = None
    unsubscribed: Column | None = None
    properties: dict[str, PropertyColumn] | None = None

    def header_map(self) -> HeaderMap:
        fields = {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}
        given = self.properties or {}
        return HeaderMap(fields, {key: MappedProperty(one.column, one.type) for key, one in given.items()})


def columns_of(header_map: HeaderMap, header: Sequence[str]) -> ColumnPositions:
    """Return the positions of the mapped columns in a file with this header row; Invalid where one is
    missing, or there twice."""
    email = header_map.fields[EMAIL]
    if email not in header:
        raise Invalid(f'CSV missing required "{_shown(email)}" column')
    fields = {
        name: _position(header, column)
        for name, column in header_map.fields.items()
        if header_map.is_given or column in header
    }
    properties = {
        key: (_position(header, one.column), one.type) for key, one in header_map.properties.items()
    }
    return ColumnPositions(fields, properties)


def _position(header: Sequence[str], column: str) -> int:
    found = header.count(column)
    if found == 0:
        raise Invalid(f'CSV missing mapped "{_shown(column)}" column')
    if found > 1:
        raise Invalid(f'CSV has more than one "{_shown(column)}" column')
    return header.index(column)


def _shown(column: str) -> str:
    return re.sub(r"\s+", " ", column)[:200]
