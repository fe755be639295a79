"""Parses the fields of an import's form (contact-imports.md 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.contact_properties.columns import refuse_keys
from pillarbox.contacts import wire
from pillarbox.contacts.change import MOST_LISTED
from pillarbox.contacts.imports.columns import ColumnMap, HeaderMap
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.problems import Invalid, InvalidField

LONGEST_FIELD: Final = 1024 * 1024
MOST_PROPERTIES: Final = 1000


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a file is imported."""

    columns: HeaderMap
    is_skip: bool
    segments: Sequence[UUID]
    topics: Mapping[UUID, str]


def no_text(_: Any, __: str) -> str:
    """Return "": the part with the file is no text, and is stored while it comes."""
    return ""


def header_map(text: str, path: str) -> HeaderMap:
    columns = parse(ColumnMap, _json(text, path), path).header_map()
    if len(columns.properties) > MOST_PROPERTIES:
        raise InvalidField(f"{path}.properties", f"Use at most {MOST_PROPERTIES} entries.")
    refuse_keys(list(columns.properties), f"{path}.properties")
    return columns


def segments(text: str, path: str) -> list[UUID]:
    return [wire.segment_of(item) for item in _array(text, path)]


def choices(text: str, path: str) -> wire.Choices:
    return wire.choices(_array(text, path))


def _array(text: str, path: str) -> list[Any]:
    value = _json(text, path)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidField(path, "It must be an array.")
    if len(value) > MOST_LISTED:
        raise InvalidField(path, f"Use at most {MOST_LISTED} items.")
    return value


def _json(text: str, path: str) -> Any:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise InvalidField(path, "It must be valid JSON.") from None
    if "\\u0000" in text or "\0" in text:
        raise Invalid(f"Invalid `{path}` field. It may not contain a NUL character.")
    return value
