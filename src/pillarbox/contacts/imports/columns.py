"""Which column of a file feeds which field (contact-imports.md 1.1, 1.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pillarbox.contacts.imports.cells import PROPERTY_TYPES
from pillarbox.kernel.wire.fields import words
from pillarbox.kernel.wire.problems import Invalid, InvalidField, MissingField

EMAIL: Final = "email"
FIELDS: Final = (EMAIL, "first_name", "last_name", "unsubscribed")
DEFAULT_TYPE: Final = "string"


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


def column_map(value: Any) -> HeaderMap:
    """The `column_map` of a request; unknown members are ignored."""
    if not isinstance(value, dict):
        raise InvalidField("column_map", "It must be an object.")
    fields = {EMAIL: EMAIL}
    for name in FIELDS:
        if value.get(name) is not None:
            fields[name] = _column(value[name], f"column_map.{name}")
    given = value.get("properties")
    if given is None:
        return HeaderMap(fields)
    if not isinstance(given, dict):
        raise InvalidField("column_map.properties", "It must be an object.")
    return HeaderMap(fields, {key: _property(key, one) for key, one in given.items()})


def _property(key: str, value: Any) -> MappedProperty:
    where = f"column_map.properties.{key[:50]}"
    if not isinstance(value, dict):
        raise InvalidField(where, "It must be an object.")
    if value.get("column") is None:
        raise MissingField(f"{where}.column")
    kind = value.get("type")
    if kind is None:
        kind = DEFAULT_TYPE
    elif not isinstance(kind, str) or kind not in PROPERTY_TYPES:
        raise InvalidField(f"{where}.type", words(tuple(PROPERTY_TYPES)))
    return MappedProperty(_column(value["column"], f"{where}.column"), kind)


def _column(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidField(where, "It must be a string.")
    if not value.strip():
        raise InvalidField(where, "It must not be empty.")
    return value.strip()


def columns_of(header_map: HeaderMap, header: Sequence[str]) -> ColumnPositions:
    """Where the mapped columns are in a file with this header row. Raises Invalid where one is missing, or
    there twice."""
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
