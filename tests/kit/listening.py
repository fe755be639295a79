"""A listener to events in the place of automations: it writes what it is told, in the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.application import SLICES
from pillarbox.events import plugin
from pillarbox.events.distribution import StoredEvent
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.slices import Slice

HEARD = """
    CREATE TABLE heard (
        number bigint GENERATED ALWAYS AS IDENTITY, team_id uuid, event_id uuid, name text, contact_id uuid,
        address text, email text, payload text, at timestamptz
    )
"""


class Heard(NamedTuple):
    """What the listener was told."""

    event_id: UUID
    name: str
    contact_id: UUID | None
    address: str
    payload: str


@dataclass
class Listener:
    """Listens to events of some names, or of all; it cannot take those of `refused`."""

    names: Collection[str] | None = None
    refused: set[str] = field(default_factory=set)
    asked: list[frozenset[str]] = field(default_factory=list)

    async def listening(self, conn: Connection, team_id: UUID, names: Collection[str]) -> Collection[str]:
        self.asked.append(frozenset(names))
        return names if self.names is None else set(names) & set(self.names)

    async def receive(self, conn: Connection, at: datetime, event: StoredEvent) -> None:
        await conn.execute(
            "INSERT INTO heard (team_id, event_id, name, contact_id, address, email, payload, at)"
            " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            *(event.team_id, event.id, event.name, event.contact_id, event.email.address),
            *(event.email.shown, event.payload, event.at),
        )
        if event.name in self.refused:
            raise RuntimeError("the listener cannot take this event")

    def slices(self) -> Sequence[Slice]:
        """Return the program with this listener."""
        return with_listener(self)

    async def ready(self, pool: asyncpg.Pool) -> None:
        """Make the table that it writes."""
        await pool.execute(HEARD)


async def heard(pool: asyncpg.Pool, team_id: UUID) -> list[Heard]:
    """Return what was told of a team's events, in order."""
    rows = await pool.fetch(
        "SELECT event_id, name, contact_id, address, payload FROM heard WHERE team_id = $1 ORDER BY number",
        team_id,
    )
    return [Heard(*row) for row in rows]


def with_listener(listener: Listener | None) -> Sequence[Slice]:
    """Return the program with this listener to events, or with none."""
    own = replace(plugin.SLICE, jobs=lambda kit: plugin.handlers(kit, listener))
    return [own if one.name == "events" else one for one in SLICES]
