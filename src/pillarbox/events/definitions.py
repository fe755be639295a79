"""Definitions of events: their names, and what payloads of that name may hold (events.md section 1)."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.events import definition_queries as queries
from pillarbox.events.definition_queries import EventDefinitionRow
from pillarbox.events.payloads import Schema
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import InvalidField, MissingField, NotFound
from pillarbox.kernel.wire.uuids import well_formed

MOST_NAME: Final = 100
MOST_KEY: Final = 100
RESERVED: Final = "resend:"
"""How the names of events begin that happen to mail (automations.md section 3.5)."""


def event_name(text: str, field: str) -> str:
    """Return the name that was given; 422 where no event can have it."""
    name = text.strip()
    if not name:
        raise MissingField(field)
    if len(name) > MOST_NAME:
        raise InvalidField(field, f"Use at most {MOST_NAME} characters.")
    if not name.isprintable() and any(unicodedata.category(character) == "Cc" for character in name):
        raise InvalidField(field, "Control characters are not allowed.")
    if well_formed(name):
        raise InvalidField(field, "It must not look like an id.")
    if name.startswith(RESERVED):
        raise InvalidField(field, f"Names that begin with `{RESERVED}` are reserved.")
    return name


def check_schema(schema: Schema) -> None:
    """Raise a 422 where a key of the schema cannot be the name of a payload's member."""
    for key in schema:
        if not 1 <= len(key) <= MOST_KEY or "." in key:
            raise InvalidField("schema", f"Use keys of 1 to {MOST_KEY} characters without `.`.")


async def define(db: TeamDb, ids: Ids, name: str, schema: Schema | None) -> UUID:
    """Make a definition; 422 where the team has one of that name."""
    stamp = ids.stamp()
    try:
        await queries.insert(db, stamp.id, name, _json(schema), stamp.at)
    except asyncpg.UniqueViolationError as clash:
        if clash.constraint_name != "event_definitions_team_name_key":
            raise
        raise InvalidField("name", "There is an event of this name already.") from None
    return stamp.id


async def found(db: TeamDb, identifier: str) -> EventDefinitionRow:
    """Return the definition that a path names, by its id or its name; 404 where there is none."""
    if well_formed(identifier):
        definition = await queries.by_id(db, UUID(identifier))
    else:
        definition = await queries.by_name(db, identifier)
    if definition is None:
        raise NotFound("Event")
    return definition


async def change(db: TeamDb, identifier: str, schema: Schema | None, now: datetime) -> UUID:
    """Replace the schema, for events that are sent from now on."""
    definition = await found(db, identifier)
    if not await queries.change(db, definition.id, _json(schema), now):
        raise NotFound("Event")
    return definition.id


async def delete(db: TeamDb, identifier: str) -> UUID:
    """Remove the definition; events of its name are sent and listened to as before."""
    definition = await found(db, identifier)
    if not await queries.delete(db, definition.id):
        raise NotFound("Event")
    return definition.id


def _json(schema: Schema | None) -> str | None:
    return None if schema is None else msgspec.json.encode(schema).decode()


async def by_name(db: TeamDb, name: str) -> EventDefinitionRow | None:
    """Return the definition of that name; None where the team has none."""
    return await queries.by_name(db, name)
