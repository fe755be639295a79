"""SQL of sending events, for those of several teams in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, literal

# Across teams: what payloads of these names may hold.
SCHEMAS: Final = """
    SELECT d.team_id, d.name, d.schema
      FROM unnest($1::text::uuid[], $2::text[]) AS k (team_id, name)
      JOIN event_definitions d ON d.team_id = k.team_id AND d.name = k.name
     WHERE d.schema IS NOT NULL
"""

# Across teams: the addresses of these contacts.
ADDRESSES: Final = """
    SELECT c.team_id, c.id, c.address, c.email
      FROM unnest($1::text::uuid[], $2::text::uuid[]) AS k (team_id, id)
      JOIN contacts c ON c.team_id = k.team_id AND c.id = k.id
"""

# Across teams: numbered in this order. What has no instant of its own happened now.
INSERT: Final = """
    INSERT INTO events (team_id, id, partition, name, contact_id, address, email, payload, at)
    SELECT k.team_id, k.id, k.partition, k.name, k.contact_id, k.address, k.email, k.payload::json,
           coalesce(k.at, $10)
      FROM unnest($1::text::uuid[], $2::text::uuid[], $3::text::smallint[], $4::text[], $5::text::uuid[],
                  $6::text[], $7::text[], $8::text[], $9::timestamptz[])
           WITH ORDINALITY AS k (team_id, id, partition, name, contact_id, address, email, payload, at, place)
     ORDER BY k.place
"""

# Across teams: these jobs stay until the transaction ends. One that is about to end is waited for.
HOLD_JOBS: Final = """
    SELECT j.team_id, j.subject_id
      FROM unnest($2::text::uuid[], $3::text::uuid[]) AS k (team_id, subject_id)
      JOIN jobs j ON j.team_id = k.team_id AND j.kind = $1 AND j.subject_id = k.subject_id
     ORDER BY j.team_id, j.subject_id
       FOR KEY SHARE OF j
"""


class EventRow(NamedTuple):
    """A row of `events`; `payload` is JSON."""

    team_id: UUID
    id: UUID
    partition: int
    name: str
    contact_id: UUID | None
    address: str
    email: str | None
    payload: str
    at: datetime | None


class PartitionKey(NamedTuple):
    """A partition of a team, as the subject of its job."""

    team_id: UUID
    subject_id: UUID


async def schemas(conn: Connection, names: Collection[tuple[UUID, str]]) -> dict[tuple[UUID, str], str]:
    """Return the schemas of those of these teams' events that have one."""
    rows = await conn.fetch(SCHEMAS, literal([team for team, _ in names]), [name for _, name in names])
    return {(row["team_id"], row["name"]): row["schema"] for row in rows}


async def addresses(
    conn: Connection, contacts: Collection[tuple[UUID, UUID]]
) -> dict[tuple[UUID, UUID], tuple[str, str | None]]:
    """Return the address of each of these contacts that exists, and how it is shown where that is something
    else."""
    rows = await conn.fetch(
        ADDRESSES, literal([team for team, _ in contacts]), literal([found for _, found in contacts])
    )
    return {(row["team_id"], row["id"]): (row["address"], row["email"]) for row in rows}


async def insert(conn: Connection, rows: Sequence[EventRow], now: datetime) -> None:
    await conn.execute(
        INSERT,
        literal([row.team_id for row in rows]),
        literal([row.id for row in rows]),
        literal([row.partition for row in rows]),
        [row.name for row in rows],
        literal([row.contact_id for row in rows]),
        [row.address for row in rows],
        [row.email for row in rows],
        [row.payload for row in rows],
        [row.at for row in rows],
        now,
    )


async def hold_jobs(conn: Connection, kind: str, partitions: Sequence[PartitionKey]) -> set[PartitionKey]:
    """Return those of these partitions that have a job; it does not end before the transaction."""
    rows = await conn.fetch(
        HOLD_JOBS,
        kind,
        literal([partition.team_id for partition in partitions]),
        literal([partition.subject_id for partition in partitions]),
    )
    return {PartitionKey(*row) for row in rows}
