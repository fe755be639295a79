"""The numbers of properties, under which imports keep the values of a file (contact-imports.md 1.1, 1.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pillarbox.contact_properties import queries
from pillarbox.contact_properties.defining import RESERVED, define
from pillarbox.contact_properties.wire import KEY_REASON
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Invalid, InvalidField

_KEY = re.compile(r"[A-Za-z0-9_]{1,50}", re.ASCII)


def refuse_keys(keys: Sequence[str], where: str) -> None:
    """Raise a 422 where one of these cannot be the key of a property; `where` is the field that has them."""
    for key in keys:
        if _KEY.fullmatch(key) is None:
            raise InvalidField(f"{where}.{key[:50]}", KEY_REASON)
        if key in RESERVED:
            raise InvalidField(f"{where}.{key}", f"`{key}` is reserved.")


async def numbers_of(db: TeamDb, ids: Ids, types: Mapping[str, str]) -> dict[str, int]:
    """Return the number of the property of each key, with the type that is wanted; those that the team has
    not are defined. 422 for a property of another type, 403 for one too many."""
    known = {one.key: one for one in await queries.named(db, list(types))}
    for key, kind in types.items():
        if key in known and known[key].type != kind:
            raise Invalid(f"The property `{key}` has the type `{known[key].type}`, not `{kind}`.")
    missing = [key for key in types if key not in known]
    for key in missing:
        await define(db, ids, key, types[key])
    made = {one.key: one for one in await queries.named(db, missing)} if missing else {}
    return {key: (known.get(key) or made[key]).number for key in types}


async def held(db: TeamDb, numbers: Sequence[int]) -> set[int]:
    """Return those of these numbers that may be written. No definition of the team is deleted until the
    transaction ends."""
    await queries.hold(db)
    return set(await queries.living(db, numbers)) if numbers else set()
