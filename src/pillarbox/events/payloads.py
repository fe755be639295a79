"""Checks payloads, and converts their values to the types of a schema (events.md section 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from math import isfinite
from typing import Any, Final, Literal

import msgspec

from pillarbox.kernel.ids import EPOCH
from pillarbox.kernel.wire.fields import words
from pillarbox.kernel.wire.instants import iso_style, parse_instant
from pillarbox.kernel.wire.problems import InvalidField

Kind = Literal["string", "number", "boolean", "date"]
Schema = Mapping[str, Kind]

MOST_OCTETS: Final = 100 * 1024
MOST_DEPTH: Final = 10
LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""

LONGEST_NUMBER: Final = 100
EXACT: Final = 2**53
"""Whole numbers below it are themselves as floats."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)


def encoded(payload: Mapping[str, Any]) -> str:
    """Return the payload as it is stored; 422 where it is nested too deep or too long."""
    if _depth(payload) > MOST_DEPTH:
        raise InvalidField("payload", f"Use at most {MOST_DEPTH} levels.")
    text = msgspec.json.encode(payload)
    if len(text) > MOST_OCTETS:
        raise InvalidField("payload", f"Use at most {MOST_OCTETS:,} octets of JSON.")
    return text.decode()


def fitted(payload: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the payload with its values as the schema wants them; 422 for the first that is something else.
    What either of the two does not have is no mistake."""
    found = dict(payload)
    for key, kind in schema.items():
        if found.get(key) is not None:
            found[key] = _fitted(found[key], kind, f"payload.{key}")
    return found


def _depth(payload: Mapping[str, Any]) -> int:
    """Return how deep objects and arrays are nested, up to the first depth that is too much."""
    level: list[Any] = [payload]
    for depth in range(1, MOST_DEPTH + 1):
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, Mapping) else value)
            if isinstance(child, dict | list)
        ]
        if not level:
            return depth
    return MOST_DEPTH + 1


def _fitted(value: Any, kind: Kind, field: str) -> Any:
    if kind == "string":
        return _text(value, field)
    if kind == "number":
        return _number(value, field)
    if kind == "boolean":
        return _boolean(value, field)
    return _date(value, field)


def _text(value: Any, field: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        value = int(value)
    if isinstance(value, bool | int | float):
        return msgspec.json.encode(value).decode()
    raise InvalidField(field, "It must be a string.")


def _number(value: Any, field: str) -> Any:
    if type(value) in (int, float):
        return value
    if isinstance(value, str) and len(value) <= LONGEST_NUMBER:
        match = _NUMBER.fullmatch(value.strip())
        if match is not None and match[1] is None and match[2] is None:
            return int(match[0])
        if match is not None and isfinite(number := float(match[0])):
            return number
    raise InvalidField(field, "It must be a number.")


def _boolean(value: Any, field: str) -> bool:
    if isinstance(value, bool):
        return value
    if value not in ("true", "false"):
        raise InvalidField(field, words(("true", "false")))
    return bool(value == "true")


def _date(value: Any, field: str) -> str:
    if type(value) is int and 0 <= value <= LAST_MS:
        return iso_style(EPOCH + timedelta(milliseconds=value))
    if isinstance(value, str):
        try:
            return iso_style(parse_instant(value, date_only=True))
        except ValueError as wrong:
            raise InvalidField(field, str(wrong)) from None
    raise InvalidField(field, "It must be an ISO 8601 date and time, or milliseconds since 1970.")
