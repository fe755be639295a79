"""SQL of the engagement of contacts, and of the events that they had."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source, TeamDb

BEGIN: Final = (
    "INSERT INTO engagement_progress (id, counted_until) VALUES (1, $1) ON CONFLICT (id) DO NOTHING"
)

PROGRESS: Final = "SELECT counted_until FROM engagement_progress WHERE id = 1 FOR UPDATE SKIP LOCKED"

ADVANCE: Final = "UPDATE engagement_progress SET counted_until = $1 WHERE id = 1"

# Across teams: the history is read by time alone, as for the sums by provider. The kind is an expression,
# so that the index by kind, which has all opens there ever were, is not used. A detail may hold what JSON
# cannot be read with, so a machine is looked for in its text, where quotes within texts are escaped. A
# contact that is being deleted is locked, and passed by.
COUNT_SLICE: Final = r"""
    WITH slice AS MATERIALIZED (
        SELECT h.team_id, h.email_id, h.position, h.at, h.kind
          FROM timeline h
         WHERE h.at >= $1 AND h.at < $2 AND h.kind || '' IN ('opened', 'clicked', 'bounced')
           AND coalesce(h.detail::text NOT LIKE '%"machine":%', true)
    ), addressed AS MATERIALIZED (
        SELECT s.team_id, r.address, max(s.at) FILTER (WHERE s.kind = 'opened') AS opened_at,
               max(s.at) FILTER (WHERE s.kind = 'clicked') AS clicked_at,
               max(s.at) FILTER (WHERE s.kind = 'bounced') AS bounced_at
          FROM slice s
         CROSS JOIN LATERAL (
               SELECT k.address
                 FROM recipients k
                WHERE k.team_id = s.team_id AND k.email_id = s.email_id AND k.position = s.position
               OFFSET 0) AS r
         GROUP BY s.team_id, r.address
    ), held AS MATERIALIZED (
        SELECT c.team_id, c.id, a.opened_at, a.clicked_at, a.bounced_at
          FROM addressed a
          JOIN contacts c ON c.team_id = a.team_id AND c.address = a.address
         ORDER BY c.team_id, c.id
           FOR KEY SHARE OF c SKIP LOCKED
    )
    INSERT INTO contact_engagement AS g (team_id, contact_id, opened_at, clicked_at, bounced_at)
    SELECT team_id, id, opened_at, clicked_at, bounced_at FROM held ORDER BY team_id, id
        ON CONFLICT (team_id, contact_id) DO UPDATE
       SET opened_at = greatest(g.opened_at, excluded.opened_at),
           clicked_at = greatest(g.clicked_at, excluded.clicked_at),
           bounced_at = greatest(g.bounced_at, excluded.bounced_at)
"""

# Of a contact that is deleted meanwhile nothing is kept: it is locked, and passed by.
ADD_EVENTS: Final = """
    WITH given AS MATERIALIZED (
        SELECT k.address, k.name, min(k.at) AS first_at, max(k.at) AS last_at, count(*) AS occurrences
          FROM unnest($2::text[], $3::text[], $4::timestamptz[]) AS k (address, name, at)
         GROUP BY k.address, k.name
    ), held AS MATERIALIZED (
        SELECT c.id, g.name, g.first_at, g.last_at, g.occurrences
          FROM given g
          JOIN contacts c ON c.team_id = $1 AND c.address = g.address
         ORDER BY c.id
           FOR KEY SHARE OF c SKIP LOCKED
    )
    INSERT INTO contact_events AS e (team_id, contact_id, name, first_at, last_at, occurrences)
    SELECT $1, id, name, first_at, last_at, occurrences FROM held ORDER BY name, id
        ON CONFLICT (team_id, name, contact_id) DO UPDATE
       SET first_at = least(e.first_at, excluded.first_at), last_at = greatest(e.last_at, excluded.last_at),
           occurrences = e.occurrences + excluded.occurrences
"""

REMOVE: Final = """
    WITH engaged AS (
        DELETE FROM contact_engagement WHERE team_id = $1 AND contact_id = $2
    )
    DELETE FROM contact_events WHERE team_id = $1 AND contact_id = $2
"""


# Each name once, by jumps in the index: there may be millions of rows.
NAMES: Final = """
    WITH RECURSIVE names AS (
        (SELECT name FROM contact_events WHERE team_id = $1 ORDER BY name LIMIT 1)
        UNION ALL
        SELECT (SELECT e.name FROM contact_events e
                 WHERE e.team_id = $1 AND e.name > n.name ORDER BY e.name LIMIT 1)
          FROM names n
         WHERE n.name IS NOT NULL
    )
    SELECT name FROM names WHERE name IS NOT NULL LIMIT $2
"""

OF_CONTACTS: Final = """
    SELECT contact_id, opened_at, clicked_at, bounced_at
      FROM contact_engagement
     WHERE team_id = $1 AND contact_id = ANY ($2::uuid[])
"""


class Engagement(NamedTuple):
    """The last instants at which a contact opened mail, followed a link, and bounced."""

    contact_id: UUID
    opened_at: datetime | None
    clicked_at: datetime | None
    bounced_at: datetime | None


async def names(db: TeamDb, limit: int) -> Sequence[str]:
    """Return the names of events that contacts had."""
    return await db.values(NAMES, limit)


async def of_contacts(db: TeamDb, ids: Sequence[UUID]) -> list[Engagement]:
    """Return the engagement of those of these contacts that have some."""
    return await db.all(Engagement, OF_CONTACTS, ids)


async def begin(source: Source, since: datetime) -> None:
    """Begin to read the history at this instant, unless it is read already."""
    await source.execute(BEGIN, since)


async def progress(conn: Connection) -> datetime | None:
    """Return up to when the history is read, and keep others from reading on; None where another does."""
    found: datetime | None = await conn.fetchval(PROGRESS)
    return found


async def advance(conn: Connection, until: datetime) -> None:
    await conn.execute(ADVANCE, until)


async def count_slice(conn: Connection, start: datetime, end: datetime) -> int:
    """Add a slice of the history to the engagement of contacts; return of how many."""
    status: str = await conn.execute(COUNT_SLICE, start, end)
    return int(status.rsplit(" ", 1)[-1])


async def add_events(
    db: TeamDb, addresses: Sequence[str], names: Sequence[str], times: Sequence[datetime]
) -> int:
    """Add events to the contacts that have these addresses; return how many pairs of contact and name."""
    return await db.run(ADD_EVENTS, addresses, names, times)


async def remove(db: TeamDb, contact_id: UUID) -> None:
    """Remove what is kept of a contact that is deleted."""
    await db.run(REMOVE, contact_id)
