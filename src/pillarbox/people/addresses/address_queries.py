"""SQL of changes of the address that somebody logs in with. People belong to no team."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Source


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A change that waits for its link."""

    email: str
    expires_at: datetime


# A second one takes the place of the first, whose link does not work any more.
ASK = """
    INSERT INTO person_address_changes (person_id, hash, email, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (person_id) DO UPDATE
       SET hash = excluded.hash, email = excluded.email, created_at = excluded.created_at,
           expires_at = excluded.expires_at
"""

PENDING = "SELECT email, expires_at FROM person_address_changes WHERE person_id = $1 AND expires_at > $2"

FIND = "SELECT email FROM person_address_changes WHERE hash = $1 AND person_id = $2 AND expires_at > $3"

USE = """
    DELETE FROM person_address_changes
     WHERE hash = $1 AND person_id = $2 AND expires_at > $3
    RETURNING email
"""

END = "DELETE FROM person_address_changes WHERE person_id = $1 RETURNING email"

REMOVE_OLD = """
    DELETE FROM person_address_changes
     WHERE person_id IN (SELECT person_id FROM person_address_changes WHERE expires_at < $1 LIMIT $2)
"""

SET_ADDRESS = "UPDATE people SET email = $2, email_key = $3 WHERE id = $1"

# Across teams: those of one person. A team that has the address for itself keeps both.
FOLLOW = """
    UPDATE team_members m
       SET email = $2
     WHERE m.person_id = $1
       AND NOT EXISTS (SELECT FROM team_members o
                        WHERE o.team_id = m.team_id AND o.id <> m.id AND lower(o.email) = lower($2))
"""


async def pending(source: Source, person_id: UUID, now: datetime) -> PendingChange | None:
    row = await source.fetchrow(PENDING, person_id, now)
    return None if row is None else PendingChange(**row)
