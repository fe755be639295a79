"""The values of `variables` and of changes of contacts when their step begins (automations.md 3.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from pillarbox.automations.graphs.evaluation import EvaluationInput, read
from pillarbox.automations.graphs.rules import Constant, JsonValue, Value
from pillarbox.mail.placeholders.rendering import printed
from pillarbox.templates.variables import wrong

Kind = Literal["string", "number", "boolean"]
"""Of what type a variable of a template, a property or a field of a contact is."""

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)

MOST_BITS: Final = 4096
"""A greater whole number has no text form."""


@dataclass(frozen=True, slots=True)
class ResolvedValue:
    """A value that fits. `is_foreign` says that it came through a field: other people's data, which is
    escaped in html (templates.md 5)."""

    value: str | int | float | bool
    is_foreign: bool


@dataclass(frozen=True, slots=True)
class MissingValue:
    """There is none: a field is missing or null, or the graph says null. `is_foreign` tells them apart: a
    change of a contact is skipped for the first and clears for the second."""

    is_foreign: bool


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The step fails with `invalid_variable`; `reason` is a sentence."""

    reason: str


def resolved(
    value: Value, kind: Kind, facts: EvaluationInput, *, takes_json: bool = False
) -> ResolvedValue | MissingValue | Mismatch:
    """Return the value as one of that type. A field's value is converted where that is unambiguous; a
    constant of the graph is not. `takes_json` allows an array or object to become a text, its JSON."""
    if isinstance(value, Constant):
        return _constant(value, kind)
    if isinstance(value, JsonValue):
        return _constant(Constant(value.text), kind)
    found = read(value.field, facts)
    if found is None:
        return MissingValue(is_foreign=True)
    if takes_json and isinstance(found, list | dict):
        found = _json_text(found)
    converted = _converted(found, kind)
    if converted is None:
        return Mismatch(f"`{value.field.text}` is not a {kind}.")
    reason = None if isinstance(converted, bool) else wrong(converted, _wire_kind(converted))
    return ResolvedValue(converted, is_foreign=True) if reason is None else Mismatch(reason)


def _json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _constant(value: Constant, kind: Kind) -> ResolvedValue | MissingValue | Mismatch:
    found = value.value
    if found is None:
        return MissingValue(is_foreign=False)
    if isinstance(found, bool) and kind != "boolean":
        found = "true" if found else "false"
    fits = (
        isinstance(found, bool)
        if kind == "boolean"
        else isinstance(found, str)
        if kind == "string"
        else isinstance(found, int | float) and not isinstance(found, bool)
    )
    return ResolvedValue(found, is_foreign=False) if fits else Mismatch(f"The value is not a {kind}.")


def _converted(value: object, kind: Kind) -> str | int | float | bool | None:
    if kind == "string":
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value) if value.bit_length() <= MOST_BITS else None
        if isinstance(value, float):
            return printed(value)
        return value if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    return _number(value) if isinstance(value, str) else None


def _number(text: str) -> int | float | None:
    """Return a number that is written as JSON writes it, blanks around it aside."""
    text = text.strip()
    if len(text) > 400 or _NUMBER.fullmatch(text) is None:
        return None
    return float(text) if any(mark in text for mark in ".eE") else int(text)


def _wire_kind(value: str | int | float) -> Literal["string", "number"]:
    return "string" if isinstance(value, str) else "number"
