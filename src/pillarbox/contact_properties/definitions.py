"""Definitions of properties, and values that are to be kept under them (contacts.md 1 and 4).

Values are kept in a contact's row under the number of their definition (`docs/decisions/0060`). Whoever
writes values holds the definitions until the commit, and whoever deletes one waits for them; so nothing is
written under a number after its definition was deleted, and the job that removes the values finds all of
them. In a transaction that does both, definitions are held before a contact is locked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from pillarbox.contact_properties import queries
from pillarbox.contact_properties.queries import PropertyDefinition
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import every_row
from pillarbox.kernel.wire.problems import InvalidField

LONGEST: Final = 2000
"""Characters of a text."""

MOST: Final = 1000
"""Properties of a team."""

GREATEST: Final = 2**53 - 1
SHOWN: Final = 50


class Values(NamedTuple):
    """The values that a contact gets, as JSON by property number, and the numbers of those that it loses."""

    given: str = "{}"
    cleared: tuple[str, ...] = ()


NO_VALUES: Final = Values()


async def definitions(db: TeamDb) -> list[PropertyDefinition]:
    """Return the properties of the team, the newest first."""
    return await every_row(partial(queries.page, db))


async def named(db: TeamDb, keys: Sequence[str]) -> list[PropertyDefinition]:
    """Return the definitions of those of these keys that have one."""
    return await queries.named(db, keys)


async def fallbacks(db: TeamDb) -> dict[str, Any]:
    """Return the fallback values of the team's properties, by key; properties without one are absent."""
    known = await definitions(db)
    return {
        one.key: msgspec.json.decode(one.fallback_value) for one in known if one.fallback_value is not None
    }


async def values_of(db: TeamDb, properties: Mapping[str, Any]) -> Values:
    """Return the values as they are stored, by property number; null clears one. 422 for an undefined key, or
    a value of another type. No definition is deleted until the transaction ends."""
    if not properties:
        return NO_VALUES
    await queries.hold(db)
    known = {one.key: one for one in await queries.named(db, list(properties))}
    given: dict[str, Any] = {}
    cleared: list[str] = []
    for key, value in properties.items():
        if key not in known:
            raise InvalidField("properties", f"There is no property `{key[:SHOWN]}`.")
        if value is None:
            cleared.append(str(known[key].number))
        else:
            refuse(value, known[key].type, f"properties.{key}")
            given[str(known[key].number)] = value
    return Values(msgspec.json.encode(given).decode(), tuple(cleared))


def refuse(value: object, kind: str, field: str) -> None:
    """Raise a 422 for a value that does not fit the type of its property."""
    reason = wrong(value, kind)
    if reason is not None:
        raise InvalidField(field, reason)


def wrong(value: object, kind: str) -> str | None:
    """Return the fault of a property's value as a sentence; None where its type and size are right."""
    if kind == "string":
        if type(value) is not str:
            return "It must be a string."
        return None if len(value) <= LONGEST else f"Use at most {LONGEST} characters."
    if kind == "boolean":
        return None if type(value) is bool else "It must be `true` or `false`."
    if not isinstance(value, int | float) or type(value) is bool:
        return "It must be a number."
    # A whole number may be greater than any float.
    if not -GREATEST <= value <= GREATEST:
        return f"Use a number from -{GREATEST} to {GREATEST}."
    return None


__all__ = [
    "PropertyDefinition",
    "Values",
    "definitions",
    "fallbacks",
    "named",
    "refuse",
    "values_of",
    "wrong",
]
