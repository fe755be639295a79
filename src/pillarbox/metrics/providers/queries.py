"""SQL of the sums by mailbox provider."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source, TeamDb

BEGIN: Final = "INSERT INTO provider_progress (id, counted_until) VALUES (1, $1) ON CONFLICT (id) DO NOTHING"

PROGRESS: Final = "SELECT counted_until FROM provider_progress WHERE id = 1 FOR UPDATE SKIP LOCKED"

ADVANCE: Final = "UPDATE provider_progress SET counted_until = $1 WHERE id = 1"

# The history is read by time alone, whose index knows which pages have a slice; each email is looked up by
# its key. A detail may hold what JSON cannot be read with, so it is compared as text: the host is its first
# field, and quotes within texts are escaped. A regular expression would take twenty times as long.
COUNTED: Final = r"""
    WITH slice AS MATERIALIZED (
        SELECT h.team_id, h.kind, h.detail::text AS detail,
               date_bin('1 day', h.at, 'epoch'::timestamptz) AS day,
               (SELECT e.domain_id
                  FROM emails e
                 WHERE e.team_id = h.team_id AND e.id = h.email_id) AS domain_id
          FROM timeline h
         WHERE h.at >= $1 AND h.at < $2 AND h.kind IN ('sent', 'delivered', 'delivery_delayed', 'bounced')
    )
    SELECT s.team_id, s.domain_id, s.day,
           CASE WHEN s.detail LIKE '{"host":"%' THEN left(split_part(s.detail, '"', 4), 255) END AS host,
           count(*) FILTER (WHERE s.kind = 'sent') AS sent,
           count(*) FILTER (WHERE s.kind = 'delivered') AS delivered,
           count(*) FILTER (WHERE s.kind = 'delivery_delayed'
                              AND coalesce(s.detail NOT LIKE '%"repeated":true%', true)) AS delivery_delayed,
           count(*) FILTER (WHERE s.kind = 'bounced') AS bounced,
           count(*) FILTER (WHERE s.kind = 'bounced'
                              AND s.detail LIKE '%"bounce":{"type":"Permanent"%') AS bounced_permanent
      FROM slice s
     WHERE s.domain_id IS NOT NULL
     GROUP BY 1, 2, 3, 4
"""

# The kind is an expression, so that the index by kind, which has all complaints there ever were, is not used.
COMPLAINTS: Final = r"""
    SELECT h.team_id, h.email_id, h.position,
           (SELECT e.domain_id FROM emails e WHERE e.team_id = h.team_id AND e.id = h.email_id) AS domain_id,
           date_bin('1 day', h.at, 'epoch'::timestamptz) AS day,
           CASE WHEN h.detail::text LIKE '{"host":"%' THEN left(split_part(h.detail::text, '"', 4), 255) END
               AS host
      FROM timeline h
     WHERE h.at >= $1 AND h.at < $2 AND h.kind || '' = 'complained'
"""

# The servers that were offered these emails.
SERVERS: Final = r"""
    SELECT k.place, left(split_part(d.detail::text, '"', 4), 255) AS host
      FROM unnest($1::uuid[], $2::uuid[], $3::smallint[]) WITH ORDINALITY
           AS k (team_id, email_id, position, place)
      JOIN timeline d ON d.team_id = k.team_id AND d.email_id = k.email_id AND d.position = k.position
     WHERE d.kind IN ('sent', 'delivered') AND d.detail::text LIKE '{"host":"%'
     ORDER BY k.place, d.id
"""

NAMES: Final = """
    SELECT p.team_id, p.domain_id, p.day, array_agg(p.provider) AS providers
      FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS k (team_id, domain_id, day)
      JOIN provider_days p ON p.team_id = k.team_id AND p.domain_id = k.domain_id AND p.day = k.day
     GROUP BY 1, 2, 3
"""

ADD: Final = """
    INSERT INTO provider_days AS p (team_id, domain_id, day, provider, sent, delivered, delivery_delayed,
                                    bounced, bounced_permanent, complained)
    SELECT k.*
      FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::bigint[], $6::bigint[],
                  $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
           AS k (team_id, domain_id, day, provider, sent, delivered, delivery_delayed, bounced,
                 bounced_permanent, complained)
     ORDER BY 1, 2, 3, 4
        ON CONFLICT (team_id, domain_id, day, provider) DO UPDATE
       SET sent = p.sent + excluded.sent, delivered = p.delivered + excluded.delivered,
           delivery_delayed = p.delivery_delayed + excluded.delivery_delayed,
           bounced = p.bounced + excluded.bounced,
           bounced_permanent = p.bounced_permanent + excluded.bounced_permanent,
           complained = p.complained + excluded.complained
"""

REMOVE_OLD: Final = """
    DELETE FROM provider_days
     WHERE (team_id, domain_id, day, provider) IN (SELECT p.team_id, p.domain_id, p.day, p.provider
                                                     FROM provider_days p
                                                    WHERE p.day < $1
                                                    LIMIT $2)
"""

OF_DOMAIN: Final = """
    SELECT p.provider, sum(p.sent)::bigint AS sent, sum(p.delivered)::bigint AS delivered,
           sum(p.delivery_delayed)::bigint AS delivery_delayed, sum(p.bounced)::bigint AS bounced,
           sum(p.bounced_permanent)::bigint AS bounced_permanent, sum(p.complained)::bigint AS complained
      FROM provider_days p
     WHERE p.team_id = $1 AND p.domain_id = $2 AND p.day >= $3
     GROUP BY p.provider
     ORDER BY 2 DESC, 1
"""


BEGAN: Final = "SELECT applied_at FROM schema_migrations WHERE name = 'mailbox_providers'"


class ProviderDay(NamedTuple):
    """The domain and the UTC day of some events, and the provider that they are about."""

    team_id: UUID
    domain_id: UUID
    day: datetime
    provider: str


class ProviderCounts(NamedTuple):
    """Numbers of events, each of one email to one recipient."""

    sent: int = 0
    delivered: int = 0
    delivery_delayed: int = 0
    bounced: int = 0
    bounced_permanent: int = 0
    complained: int = 0


class ProviderSum(NamedTuple):
    """The sums of a provider; "" stands for all that have no row of their own."""

    provider: str
    sent: int
    delivered: int
    delivery_delayed: int
    bounced: int
    bounced_permanent: int
    complained: int


class CountedHost(NamedTuple):
    """The events of a slice at one server, None where it is not known."""

    team_id: UUID
    domain_id: UUID
    day: datetime
    host: str | None
    sent: int
    delivered: int
    delivery_delayed: int
    bounced: int
    bounced_permanent: int


class StoredComplaint(NamedTuple):
    """A complaint; `host` is who reported it."""

    team_id: UUID
    email_id: UUID
    position: int
    domain_id: UUID | None
    day: datetime
    host: str | None


async def begin(source: Source, instant: datetime) -> None:
    """Say from when on the history is to be counted, where nothing is counted yet."""
    await source.execute(BEGIN, instant)


async def progress(conn: Connection) -> datetime | None:
    """Lock and return the end of what is counted; None where another process counts."""
    found: datetime | None = await conn.fetchval(PROGRESS)
    return found


async def advance(conn: Connection, instant: datetime) -> None:
    """Say that the history is counted up to an instant."""
    await conn.execute(ADVANCE, instant)


async def counted(conn: Connection, start: datetime, end: datetime) -> list[CountedHost]:
    """Return the events of a slice by domain, day and server."""
    return [CountedHost._make(row) for row in await conn.fetch(COUNTED, start, end)]


async def complaints(conn: Connection, start: datetime, end: datetime) -> list[StoredComplaint]:
    """Return the complaints of a slice."""
    return [StoredComplaint._make(row) for row in await conn.fetch(COMPLAINTS, start, end)]


async def servers(conn: Connection, emails: Sequence[StoredComplaint]) -> dict[int, str]:
    """Return the servers that were offered these emails, by their place."""
    teams, ids, positions = zip(*[email[:3] for email in emails], strict=True)
    rows = await conn.fetch(SERVERS, teams, ids, positions)
    return {row["place"] - 1: row["host"] for row in rows if row["host"] is not None}


async def names(
    conn: Connection, days: Sequence[tuple[UUID, UUID, datetime]]
) -> dict[tuple[UUID, UUID, datetime], set[str]]:
    """Return the providers that these days of domains have rows of."""
    rows = await conn.fetch(NAMES, *zip(*days, strict=True))
    return {(row[0], row[1], row[2]): set(row[3]) for row in rows}


async def add(conn: Connection, rows: Sequence[tuple[ProviderDay, ProviderCounts]]) -> None:
    """Add these numbers."""
    await conn.execute(ADD, *zip(*[(*key, *counts) for key, counts in rows], strict=True))


async def remove_old(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` rows of days before an instant; return how many."""
    status: str = await source.execute(REMOVE_OLD, before, limit)
    return int(status.rsplit(" ", 1)[-1])


# Across teams: when the counting began, which is so for all of them.
async def began(source: Source) -> datetime | None:
    """Return when the tables of these sums were made; None where that is not known."""
    found: datetime | None = await source.fetchval(BEGAN)
    return found


async def of_domain(db: TeamDb, domain_id: UUID, since: datetime) -> list[ProviderSum]:
    """Return the sums of each provider since a day, the largest first."""
    return await db.all(ProviderSum, OF_DOMAIN, domain_id, since)
