"""The variables of a template: what is declared, and what a request gives (templates.md 3 and 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import Struct

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.wire.problems import Invalid, InvalidField
from pillarbox.mail.placeholders.parsing import RESERVED

LONGEST_VALUE: Final = 2000
GREATEST: Final = 2**53 - 1
SHOWN: Final = 50
"""So much of a key of a request stands in a message."""

Kind = Literal["string", "number"]
Scalar = str | int | float

_KEY: Final = re.compile(r"[A-Za-z0-9_]{1,50}", re.ASCII)

KEY_REASON: Final = "Use 1 to 50 ASCII letters, digits and underscores."


class Variable(Struct, frozen=True):
    """A variable that a version of a template declares, as it is stored."""

    id: UUID
    key: str
    type: Kind
    fallback_value: Scalar | None
    created_at: datetime
    updated_at: datetime


class DeclaredVariable(Struct, frozen=True):
    """A variable as a request declares it."""

    key: str
    type: Kind
    fallback_value: Scalar | None


_decode = msgspec.json.Decoder(list[Variable]).decode


def stored(variables: Sequence[Variable]) -> str:
    return msgspec.json.encode(variables).decode()


def of_stored(text: str) -> list[Variable]:
    return _decode(text)


def check_declared(declared_variables: Sequence[DeclaredVariable]) -> None:
    """Raise for the first variable that cannot be declared."""
    seen: set[str] = set()
    for index, one in enumerate(declared_variables):
        field = f"variables[{index}]"
        if _KEY.fullmatch(one.key) is None:
            raise InvalidField(f"{field}.key", KEY_REASON)
        if one.key in RESERVED:
            raise InvalidField(f"{field}.key", f"`{one.key}` is reserved.")
        if one.key in seen:
            raise InvalidField(f"{field}.key", f"`{one.key}` is declared twice.")
        seen.add(one.key)
        if one.fallback_value is not None:
            reason = wrong(one.fallback_value, one.type)
            if reason is not None:
                raise InvalidField(f"{field}.fallback_value", reason)


def declared(
    declared_variables: Sequence[DeclaredVariable], before: Sequence[Variable], ids: Ids, now: datetime
) -> tuple[Variable, ...]:
    """Return the variables in their new order; one whose key was there keeps its id and its time."""
    known = {variable.key: variable for variable in before}
    return tuple([_declared(one, known.get(one.key), ids, now) for one in declared_variables])


def _declared(
    declared_variable: DeclaredVariable, before: Variable | None, ids: Ids, now: datetime
) -> Variable:
    if before is None:
        return Variable(
            id=ids.new(),
            key=declared_variable.key,
            type=declared_variable.type,
            fallback_value=declared_variable.fallback_value,
            created_at=now,
            updated_at=now,
        )
    if (before.type, before.fallback_value) == (declared_variable.type, declared_variable.fallback_value):
        return before
    return Variable(
        id=before.id,
        key=declared_variable.key,
        type=declared_variable.type,
        fallback_value=declared_variable.fallback_value,
        created_at=before.created_at,
        updated_at=now,
    )


def copied(variables: Sequence[Variable], ids: Ids, now: datetime) -> tuple[Variable, ...]:
    """Return the same variables, with ids of their own, for another template."""
    return declared([DeclaredVariable(v.key, v.type, v.fallback_value) for v in variables], (), ids, now)


def given(values: object, field: str) -> dict[str, Scalar]:
    """Return the values of a request; null is none. Raises for the first that no template could take."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InvalidField(field, "Use an object.")
    found: dict[str, Scalar] = {}
    for key, value in values.items():
        name = f"{field}.{_shown(key)}"
        if _KEY.fullmatch(key) is None:
            raise InvalidField(name, KEY_REASON)
        if key in RESERVED:
            raise InvalidField(name, f"`{key}` is reserved.")
        if value is None:
            continue
        reason = wrong(value, "string" if isinstance(value, str) else "number")
        if reason is not None:
            raise InvalidField(name, reason)
        found[key] = value
    return found


def check_given(values: Mapping[str, Scalar], variables: Sequence[Variable], field: str) -> None:
    """Raise for the first value whose type is not the one that is declared."""
    for variable in variables:
        value = values.get(variable.key)
        reason = None if value is None else wrong(value, variable.type)
        if reason is not None:
            raise InvalidField(f"{field}.{variable.key}", reason)


def wrong(value: Any, kind: Kind) -> str | None:
    """Return the fault of a variable's value as a sentence; None where its type and size are right."""
    if kind == "string":
        if type(value) is not str:
            return "It must be a string."
        return None if len(value) <= LONGEST_VALUE else f"Use at most {LONGEST_VALUE} characters."
    if type(value) not in (int, float):
        return "It must be a number." if isinstance(value, str) else "It must be a string or a number."
    # A whole number may be greater than any float.
    if not -GREATEST <= value <= GREATEST:
        return f"Use a number from -{GREATEST} to {GREATEST}."
    return None


class MissingVariable(Invalid):
    def __init__(self, key: str) -> None:
        super().__init__(f"The template needs a value for the variable `{key}`: it has no fallback.")


def _shown(key: str) -> str:
    """Return a key that is safe to name in a message."""
    return re.sub(r"[^\x20-\x5f\x61-\x7e]", "_", key)[:SHOWN]
