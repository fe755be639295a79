"""Defining properties, changing their fallbacks and deleting them (contacts.md 4)."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import asyncpg
import msgspec
from msgspec import UNSET, UnsetType

from pillarbox.contact_properties import queries
from pillarbox.contact_properties.definitions import MOST, refuse
from pillarbox.contact_properties.queries import PropertyDefinition
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import InvalidField, MissingField, NotFound
from pillarbox.kernel.work import job_queries
from pillarbox.teams.allowances import TooMany

JOB_REMOVE: Final = "contact_properties.remove"

RESERVED: Final = frozenset(
    {
        "FIRST_NAME",
        "LAST_NAME",
        "EMAIL",
        "UNSUBSCRIBE_URL",
        "SERVICE_UNSUBSCRIBE_URL",
        "PILLARBOX_UNSUBSCRIBE_URL",
        "RESEND_UNSUBSCRIBE_URL",
        "first_name",
        "last_name",
        "email",
        "unsubscribed",
        "contact",
        "this",
    }
)
"""Keys that templates use for something else."""


async def define(db: TeamDb, ids: Ids, key: str, kind: str, fallback: object = None) -> UUID:
    """Define a property of the team and return its id. Call it in a transaction that holds no definitions
    yet.

    422 for a key that is reserved or taken, and for a fallback of another type; 403 for one too many.
    """
    if key in RESERVED:
        raise InvalidField("key", f"`{key}` is reserved.")
    if fallback is not None:
        refuse(fallback, kind, "fallback_value")
    await queries.hold_numbers(db)
    if await queries.count(db) >= MOST:
        raise TooMany(MOST, "contact properties")
    stamp = ids.stamp()
    try:
        await queries.insert(db, stamp.id, key, kind, _json(fallback), stamp.at)
    except asyncpg.UniqueViolationError as clash:
        if clash.constraint_name != "contact_properties_team_key":
            raise
        raise InvalidField("key", f"There is a property `{key}` already.") from None
    return stamp.id


async def property_of(db: TeamDb, property_id: UUID) -> PropertyDefinition:
    """Return the property; 404 where the team has none of that id."""
    found = await queries.one(db, property_id)
    if found is None:
        raise NotFound("Contact property")
    return found


async def change(
    db: TeamDb, property_id: UUID, fallback: object | UnsetType, key: object, kind: object
) -> None:
    """Change the fallback. `key` and `kind` are what was said of them, None where nothing was."""
    if fallback is UNSET:
        raise MissingField("fallback_value")
    found = await property_of(db, property_id)
    if key is not None and key != found.key:
        raise InvalidField("key", "The key of a property cannot be changed.")
    if kind is not None and kind != found.type:
        raise InvalidField("type", "The type of a property cannot be changed.")
    if fallback is not None:
        refuse(fallback, found.type, "fallback_value")
    if not await queries.change(db, property_id, _json(fallback)):
        raise NotFound("Contact property")


async def delete(db: TeamDb, ids: Ids, property_id: UUID) -> None:
    """Hide the property at once; a job removes its values from all contacts. Waits for requests that are
    writing values."""
    await queries.hold_alone(db)
    now = ids.now()
    if not await queries.hide(db, property_id, now):
        raise NotFound("Contact property")
    await job_queries.add(db, ids.new(), JOB_REMOVE, property_id, now)


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
