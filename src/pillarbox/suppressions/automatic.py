"""Entries that bounces and complaints make, and the look-up before sending (suppressions.md 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.webhooks.publish import Event, Publisher

ADD = """
    INSERT INTO suppressions (team_id, id, address, origin, source_id, created_at)
    SELECT DISTINCT ON (k.team_id, k.address)
           k.team_id, k.id, k.address, k.origin, k.source_id, k.created_at
      FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::uuid[], $6::timestamptz[])
           AS k (team_id, id, address, origin, source_id, created_at)
     ORDER BY k.team_id, k.address, k.id
    ON CONFLICT ON CONSTRAINT suppressions_team_address_key DO NOTHING
    RETURNING team_id, id, address, origin, source_id, created_at
"""

FIND = """
    SELECT address, origin
      FROM suppressions
     WHERE team_id = $1 AND address = ANY ($2::text[])
"""


class Cause(NamedTuple):
    """An address that proved bad, and the email that showed it."""

    team_id: UUID
    address: str
    origin: str
    source_id: UUID
    at: datetime


async def add(conn: Connection, causes: Sequence[Cause], ids: Ids, publisher: Publisher) -> None:
    """Insert these addresses and publish the new ones; one on the list already keeps its first cause."""
    if not causes:
        return
    rows = [(c.team_id, ids.new(), c.address, c.origin, c.source_id, c.at) for c in causes]
    added = await conn.fetch(ADD, *zip(*rows, strict=True))
    await publisher.publish(conn, [_event(row) for row in added])


def _event(row: Any) -> Event:
    data: dict[str, object] = {
        "id": row["id"],
        "email": row["address"],
        "origin": row["origin"],
        "source_id": row["source_id"],
        "created_at": iso_style(row["created_at"]),
    }
    return Event(row["team_id"], "suppression.added", row["created_at"], data)


async def origins(conn: Connection, team_id: UUID, addresses: Sequence[str]) -> dict[str, str]:
    """The suppressed ones among `addresses`, with their origin."""
    rows = await conn.fetch(FIND, team_id, list(addresses))
    return {row["address"]: row["origin"] for row in rows}
