"""SQL of what teams use. `USED` reads rollups of days and the increments that are not folded yet in one
snapshot, so every unit is in it once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.kernel.ids import first_id
from pillarbox.kernel.postgres.combined_statement import Statement, rows_json
from pillarbox.kernel.postgres.database import Connection, Source, TeamDb

LOCKS = 0x71756F74
"""The first half of the locks of teams' quotas; the second is the team's number."""

# In the order of the numbers, so that no two commits wait for each other crosswise.
LOCK = """
    SELECT pg_advisory_xact_lock($2, k.number)
      FROM (SELECT t.team_id, t.number
              FROM (SELECT id AS team_id, number FROM teams) AS t
             WHERE t.team_id = ANY ($1::uuid[])
             ORDER BY t.number
            OFFSET 0) AS k
"""

USED = """
    SELECT k.team_id, k.day, t.daily_quota, t.monthly_quota, u.day_sent, u.day_received, u.month_sent,
           u.month_received
      FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) AS k (team_id, day, month)
      JOIN teams t ON t.id = k.team_id
     CROSS JOIN LATERAL (
           SELECT coalesce(sum(s.sent) FILTER (WHERE s.start >= k.day AND s.start < k.day + interval '1 day'),
                           0)::bigint AS day_sent,
                  coalesce(sum(s.received) FILTER (WHERE s.start >= k.day
                                                     AND s.start < k.day + interval '1 day'),
                           0)::bigint AS day_received,
                  coalesce(sum(s.sent), 0)::bigint AS month_sent,
                  coalesce(sum(s.received), 0)::bigint AS month_received
             FROM (SELECT r.start, r.received AS sent, 0 AS received
                     FROM rollups r
                    WHERE r.team_id = k.team_id AND r.level = 3
                      AND r.start >= k.month AND r.start < k.month + interval '1 month'
                    UNION ALL
                   SELECT i.start, i.received, 0
                     FROM metric_increments i
                    WHERE i.team_id = k.team_id AND i.received <> 0
                      AND i.start >= k.month AND i.start < k.month + interval '1 month'
                    UNION ALL
                   SELECT d.day::timestamptz, -d.returned, d.received
                     FROM usage_days d
                    WHERE d.team_id = k.team_id
                      AND d.day >= k.month::date AND d.day < (k.month + interval '1 month')::date) AS s) AS u
"""

MARK_ABOVE = """
    UPDATE received_emails e
       SET above_daily = k.above_daily, above_monthly = k.above_monthly
      FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[])
           AS k (team_id, id, above_daily, above_monthly)
     WHERE e.team_id = k.team_id AND e.id = k.id
"""

GIVE_BACK = """
    INSERT INTO usage_days AS u (team_id, day, returned)
    SELECT e.team_id, e.created_at::date,
           (SELECT count(*) FROM recipients r WHERE r.team_id = e.team_id AND r.email_id = e.id)
      FROM emails e
     WHERE e.team_id = $1 AND e.id = $2
    ON CONFLICT (team_id, day) DO UPDATE SET returned = u.returned + excluded.returned
"""

# Of several teams at once: emails of one recipient each.
GIVE_BACK_COPIES = """
    INSERT INTO usage_days AS u (team_id, day, returned)
    SELECT e.team_id, e.created_at::date, count(*)
      FROM json_to_recordset($1::text::json) AS k (team_id uuid, email_id uuid)
      JOIN emails e ON e.team_id = k.team_id AND e.id = k.email_id
     GROUP BY e.team_id, e.created_at::date
     ORDER BY e.team_id, e.created_at::date
    ON CONFLICT (team_id, day) DO UPDATE SET returned = u.returned + excluded.returned
"""

IS_ABOVE = """
    SELECT coalesce(e.above_daily > t.daily_quota, false)
           OR coalesce(e.above_monthly > t.monthly_quota, false)
      FROM received_emails e
      JOIN teams t ON t.id = e.team_id
     WHERE e.team_id = $1 AND e.id = $2
"""

STORED = """
    SELECT team_id, sum(octets)::bigint AS octets
      FROM usage_days
     WHERE team_id = ANY ($1::uuid[])
     GROUP BY team_id
"""

OWNED = """
    SELECT t.most_domains,
           (SELECT count(*) FROM domains d WHERE d.team_id = $1) AS domains,
           (SELECT count(*) FROM contacts c WHERE c.team_id = $1) AS contacts,
           (SELECT count(*) FROM segments s WHERE s.team_id = $1) AS segments,
           (SELECT count(*) FROM broadcasts b WHERE b.team_id = $1) AS broadcasts,
           (SELECT count(*) FROM automation_runs r
             WHERE r.team_id = $1 AND r.id >= $2) AS automation_runs
      FROM teams t
     WHERE t.id = $1
"""

# Across teams: days of which nobody asks any more.
REMOVE_OLD_DAYS = """
    WITH old AS MATERIALIZED (
        SELECT team_id, day FROM usage_days
         WHERE day < $1 AND octets <= 0 LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM usage_days u USING old WHERE u.team_id = old.team_id AND u.day = old.day
"""


class UsedUnits(NamedTuple):
    """The usage of a team in a day and in its month, with its quotas."""

    team_id: UUID
    day: datetime
    daily_quota: int | None
    monthly_quota: int | None
    day_sent: int
    day_received: int
    month_sent: int
    month_received: int


class OwnedResources(NamedTuple):
    """How many of each a team has, and how many domains it may have where it has a number of its own."""

    most_domains: int | None
    domains: int
    contacts: int
    segments: int
    broadcasts: int
    automation_runs: int


async def lock(conn: Connection, teams: Sequence[UUID]) -> None:
    """Be the only one who spends units of these teams until the end of the transaction."""
    await conn.execute(LOCK, teams, LOCKS)


async def used(source: Source, keys: Sequence[tuple[UUID, datetime, datetime]]) -> list[UsedUnits]:
    """Return the usage of each team, day and month."""
    teams, days, months = zip(*keys, strict=True)
    return [UsedUnits(**row) for row in await source.fetch(USED, teams, days, months)]


async def mark_above(conn: Connection, rows: Sequence[tuple[UUID, UUID, int | None, int | None]]) -> None:
    """Note with received emails what they were too many by."""
    await conn.execute(MARK_ABOVE, *zip(*rows, strict=True))


async def give_back(db: TeamDb, email_id: UUID) -> None:
    await db.run(GIVE_BACK, email_id)


def give_back_copies(emails: Sequence[tuple[UUID, UUID]]) -> Statement:
    """Return the statement that gives back a unit of each of these emails, which has one recipient."""
    rows = [{"team_id": team_id, "email_id": email_id} for team_id, email_id in emails]
    return Statement(GIVE_BACK_COPIES, (rows_json(rows),))


async def stored(source: Source, teams: Sequence[UUID]) -> dict[UUID, int]:
    """Return the octets of received mail that each of these teams has."""
    return {row["team_id"]: row["octets"] for row in await source.fetch(STORED, teams)}


async def is_above(db: TeamDb, email_id: UUID) -> bool:
    found: bool | None = await db.value(IS_ABOVE, email_id)
    return bool(found)


async def owned(db: TeamDb, month: datetime) -> OwnedResources:
    """Return the team's resources now; runs of automations count from the beginning of `month` on."""
    found = await db.one(OwnedResources, OWNED, first_id(month))
    assert found is not None, "the caller's team is there"
    return found


async def remove_old_days(source: Source, before: date, limit: int) -> Any:
    return await source.execute(REMOVE_OLD_DAYS, before, limit)
