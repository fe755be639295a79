"""SQL of what commands show of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

NAMES: Final = """
    SELECT coalesce(d.name, e.name) AS name, d.id, d.schema, coalesce(e.waiting, 0) AS waiting,
           e.oldest, coalesce(e.failed, 0) AS failed, d.updated_at
      FROM (SELECT id, name, schema, updated_at FROM event_definitions WHERE team_id = $1) AS d
      FULL JOIN (SELECT name, count(*) FILTER (WHERE failed_at IS NULL) AS waiting,
                        min(at) FILTER (WHERE failed_at IS NULL) AS oldest,
                        count(*) FILTER (WHERE failed_at IS NOT NULL) AS failed
                   FROM events
                  WHERE team_id = $1
                  GROUP BY name) AS e
        ON e.name = d.name
     ORDER BY coalesce(d.name, e.name) COLLATE "C"
"""

FAILED: Final = """
    SELECT id, coalesce(email, address) AS email, payload, at, tries, failed_at, reason
      FROM events
     WHERE team_id = $1 AND name = $2 AND failed_at IS NOT NULL
     ORDER BY failed_at DESC
     LIMIT $3
"""

NEWEST: Final = """
    SELECT e.id, e.name, coalesce(e.email, e.address) AS email, left(e.payload::text, $5) AS payload, e.at,
           e.failed_at, e.reason
      FROM (SELECT id, name, email, address, payload, at, failed_at, reason
              FROM events
             WHERE team_id = $1
             ORDER BY id DESC
             LIMIT $4) AS e
     WHERE $2::text IS NULL OR e.name = $2
     ORDER BY e.id DESC
     LIMIT $3
"""

COUNTS: Final = """
    SELECT e.name, count(*) FILTER (WHERE e.failed_at IS NULL) AS waiting,
           count(*) FILTER (WHERE e.failed_at IS NOT NULL) AS failed
      FROM (SELECT name, failed_at FROM events WHERE team_id = $1 ORDER BY id DESC LIMIT $2) AS e
     GROUP BY e.name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTeamEvent:
    """An event that waits to be distributed, or failed for a reason. `payload` is its first part."""

    id: UUID
    name: str
    email: str
    payload: str
    at: datetime
    failed_at: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCount:
    """How many events of a name wait and failed."""

    name: str
    waiting: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEvent:
    """A name of events, with its definition where it has one, and how many events of it are here. `oldest` is
    when the first of those that wait was accepted."""

    name: str
    id: UUID | None
    schema: str | None
    waiting: int
    oldest: datetime | None
    failed: int
    updated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedEvent:
    """An event that could not be distributed."""

    id: UUID
    email: str
    payload: str
    at: datetime
    tries: int
    failed_at: datetime
    reason: str


async def names(db: TeamDb) -> Sequence[NamedEvent]:
    """Return every name that is defined, or of which events are stored."""
    return await db.all(NamedEvent, NAMES)


async def failed(db: TeamDb, name: str, limit: int) -> Sequence[FailedEvent]:
    """Return the events of a name that failed last."""
    return await db.all(FailedEvent, FAILED, name, limit)


async def newest(
    db: TeamDb, name: str | None, limit: int, looked_at: int, shown: int
) -> Sequence[StoredTeamEvent]:
    """Return the newest events that are stored, of one name or of all, each with so many characters of its
    payload."""
    return await db.all(StoredTeamEvent, NEWEST, name, limit, looked_at, shown)


async def counts(db: TeamDb, looked_at: int) -> Sequence[EventCount]:
    """Return how many of the newest events of each name wait and failed."""
    return await db.all(EventCount, COUNTS, looked_at)
