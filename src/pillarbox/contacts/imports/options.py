"""What the fields of an import's form say (contact-imports.md 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.contact_properties.columns import refuse_keys
from pillarbox.contacts import wire
from pillarbox.contacts.change import MOST_LISTED
from pillarbox.contacts.imports.columns import DEFAULT_MAP, HeaderMap, column_map
from pillarbox.kernel.wire.fields import choice
from pillarbox.kernel.wire.problems import Invalid, InvalidField

FILE: Final = "file"
FIELDS: Final = ("column_map", "on_conflict", "segments", "topics")
LONGEST_FIELD: Final = 1024 * 1024
MOST_PROPERTIES: Final = 1000


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a file is imported."""

    columns: HeaderMap
    is_skip: bool
    segments: Sequence[UUID]
    topics: Mapping[UUID, str]


def options_of(fields: Mapping[str, str]) -> ImportOptions:
    """The options that the fields of a form ask for; an empty field is as good as none."""
    given = {name: text.strip() for name, text in fields.items() if text.strip()}
    columns = column_map(_json(given, "column_map")) if "column_map" in given else DEFAULT_MAP
    if len(columns.properties) > MOST_PROPERTIES:
        raise InvalidField("column_map.properties", f"Use at most {MOST_PROPERTIES} entries.")
    refuse_keys(list(columns.properties), "column_map.properties")
    on_conflict = choice(dict(given), "on_conflict", "upsert", "skip")
    segments = [wire.segment_of(item) for item in _array(given, "segments")]
    topics = wire.choices(_array(given, "topics"))
    return ImportOptions(columns, on_conflict == "skip", list(dict.fromkeys(segments)), dict(topics))


def _array(given: Mapping[str, str], name: str) -> list[Any]:
    value = _json(given, name) if name in given else []
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidField(name, "It must be an array.")
    if len(value) > MOST_LISTED:
        raise InvalidField(name, f"Use at most {MOST_LISTED} items.")
    return value


def _json(given: Mapping[str, str], name: str) -> Any:
    try:
        value = msgspec.json.decode(given[name])
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise InvalidField(name, "It must be valid JSON.") from None
    if "\\u0000" in given[name] or "\0" in given[name]:
        raise Invalid(f"Invalid `{name}` field. It may not contain a NUL character.")
    return value
