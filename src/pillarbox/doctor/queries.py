"""SQL of the examination. Its statements are about the installation, across teams."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source


class FailingEndpoint(NamedTuple):
    """A webhook that fails, or was disabled because it did, with its team's name."""

    team: str
    id: UUID
    endpoint: str
    status: str
    failing_since: datetime
    last_status_code: int | None


class DeliveringProcess(NamedTuple):
    """Where processes of a host bring mail."""

    host: str
    route: str


class ClockJump(NamedTuple):
    """A clock was set by so many seconds; `at` is what it said afterwards."""

    at: datetime
    seconds: float


class NewestEmail(NamedTuple):
    """The instant of the newest email, and how many teams have one."""

    at: datetime | None
    teams: int


@dataclass(frozen=True, slots=True)
class DomainCounts:
    """The counts of a domain's mail, by outcome."""

    domain_name: str
    sent: int
    delivered: int
    bounced: int
    complained: int


async def failing_endpoints(source: Source, limit: int) -> list[FailingEndpoint]:
    """Return the webhooks that fail, those that have failed for longest first."""
    rows = await source.fetch(
        """
        SELECT t.name AS team, w.id, w.endpoint, w.status, w.failing_since, w.last_status_code
          FROM webhooks w
          JOIN teams t ON t.id = w.team_id
         WHERE w.kind = 'endpoint' AND w.failing_since IS NOT NULL
         ORDER BY w.failing_since, w.id
         LIMIT $1
        """,
        limit,
    )
    return [FailingEndpoint(*row) for row in rows]


async def enabled_endpoints(source: Source) -> int:
    """Return how many webhooks are enabled."""
    enabled: int = await source.fetchval(
        "SELECT count(*) FROM webhooks WHERE kind = 'endpoint' AND status = 'enabled'"
    )
    return enabled


async def is_receiving(source: Source) -> bool:
    """Tell whether any domain receives mail."""
    receives: bool = await source.fetchval("SELECT EXISTS (SELECT FROM domains WHERE receiving)")
    return receives


async def delivering_processes(source: Source, since: datetime) -> list[DeliveringProcess]:
    """Return the hosts and routes of processes that deliver and were seen after an instant."""
    rows = await source.fetch(
        """
        SELECT DISTINCT host, route
          FROM processes
         WHERE roles LIKE '%delivery%' AND route IS NOT NULL AND seen_at > $1
         ORDER BY host, route
        """,
        since,
    )
    return [DeliveringProcess(*row) for row in rows]


async def clock_jumps(source: Source, period: timedelta) -> list[ClockJump]:
    """Return the jumps of clocks that were seen within a period, the latest first."""
    rows = await source.fetch(
        """
    SELECT at, seconds FROM clock_jumps WHERE kept_at > clock_timestamp() - $1::interval ORDER BY kept_at DESC
        """,
        period,
    )
    return [ClockJump(*row) for row in rows]


async def newest_email(source: Source, after: UUID) -> NewestEmail:
    """Return the newest email behind an id, by one look into each team's index."""
    [row] = await source.fetch(
        """
        SELECT max(newest.created_at) AS at, count(*) AS teams
          FROM teams t
         CROSS JOIN LATERAL (
               SELECT e.created_at FROM emails e
                WHERE e.team_id = t.id AND e.id > $1
                ORDER BY e.id DESC
                LIMIT 1) AS newest
        """,
        after,
    )
    return NewestEmail(*row)


async def server_time(source: Source) -> datetime:
    """Return what the clock of the database says."""
    now: datetime = await source.fetchval("SELECT clock_timestamp()")
    return now


async def server_settings(source: Source) -> dict[str, str]:
    """Return the settings of the database that decide whether a commit lasts, and its connections."""
    rows = await source.fetch(
        """
        SELECT name, setting FROM pg_settings
         WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'zero_damaged_pages',
                        'server_encoding', 'transaction_read_only', 'max_connections',
                        'superuser_reserved_connections')
        """
    )
    return {row["name"]: row["setting"] for row in rows}


async def domain_counts(source: Source, since: datetime, least: int) -> list[DomainCounts]:
    """Return what became of the mail of each domain with at least `least` mails since a UTC midnight."""
    rows = await source.fetch(
        """
        SELECT f.domain_name, sum(f.sent)::bigint AS sent, sum(f.delivered)::bigint AS delivered,
               sum(f.bounced)::bigint AS bounced, sum(f.complained)::bigint AS complained
          FROM teams t
         CROSS JOIN LATERAL (
               SELECT r.domain_name, r.sent, r.delivered, r.complained,
                      r.bounced_transient + r.bounced_permanent + r.bounced_undetermined AS bounced
                 FROM rollups r
                WHERE r.team_id = t.id AND r.level = 3 AND r.start >= $1
               UNION ALL
               SELECT i.domain_name, i.sent, i.delivered, i.complained,
                      i.bounced_transient + i.bounced_permanent + i.bounced_undetermined
                 FROM metric_increments i
                WHERE i.team_id = t.id AND i.start >= $1) AS f
         GROUP BY f.domain_name
        HAVING sum(f.sent) >= $2
         ORDER BY f.domain_name
        """,
        since,
        least,
    )
    return [DomainCounts(**row) for row in rows]


async def restored_backup(source: Source) -> str | None:
    """Return the backup that the database was restored from, while work of it is put aside."""
    backup: str | None = await source.fetchval("SELECT backup FROM restored")
    return backup
