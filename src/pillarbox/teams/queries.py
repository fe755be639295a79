"""SQL of the teams. A team's own id takes the place of `team_id` here; statements across teams serve the
operator's commands and the first start alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.teams.team import Team


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceCount:
    """How many there are of something, and how many the team may have where it has a number of its own."""

    most: int | None
    there: int


async def insert(db: TeamDb, name: str, email: str, now: datetime) -> None:
    await db.run("INSERT INTO teams (id, name, email, created_at) VALUES ($1, $2, $3, $4)", name, email, now)


async def insert_member(db: TeamDb, member_id: UUID, email: str, now: datetime) -> None:
    await db.run(
        "INSERT INTO team_members (team_id, id, email, created_at) VALUES ($1, $2, $3, $4)",
        member_id,
        email,
        now,
    )


async def set_status(db: TeamDb, status: str) -> bool:
    return bool(await db.run("UPDATE teams SET status = $2 WHERE id = $1", status))


# Columns that `given` does not name stay as they are.
SET_LIMITS = """
    UPDATE teams t
       SET rate_limit = given.rate_limit, daily_quota = given.daily_quota,
           monthly_quota = given.monthly_quota, email_retention_days = given.email_retention_days,
           log_retention_days = given.log_retention_days,
           metrics_retention_days = given.metrics_retention_days, most_domains = given.most_domains,
           most_webhooks = given.most_webhooks, most_api_keys = given.most_api_keys
      FROM teams own
     CROSS JOIN LATERAL jsonb_populate_record(own, $2::jsonb) AS given
     WHERE t.id = $1 AND own.id = t.id
"""


async def set_limits(db: TeamDb, given: str) -> bool:
    """Set the limits that a JSON object names by their columns; null takes one away."""
    return bool(await db.run(SET_LIMITS, given))


async def hold_count(db: TeamDb, things: str) -> None:
    """Keep others from adding one of these to the team until the transaction ends."""
    await db.run("SELECT pg_advisory_xact_lock(hashtextextended($2 || ' of ' || $1::uuid, 0))", things)


async def webhooks(db: TeamDb) -> ResourceCount:
    return await _counted(
        db,
        """
        SELECT t.most_webhooks AS most,
               (SELECT count(*) FROM webhooks w WHERE w.team_id = $1 AND w.kind = 'endpoint') AS there
          FROM teams t
         WHERE t.id = $1
        """,
    )


async def api_keys(db: TeamDb) -> ResourceCount:
    return await _counted(
        db,
        """
        SELECT t.most_api_keys AS most, (SELECT count(*) FROM api_keys k WHERE k.team_id = $1) AS there
          FROM teams t
         WHERE t.id = $1
        """,
    )


async def _counted(db: TeamDb, sql: str) -> ResourceCount:
    found = await db.one(ResourceCount, sql)
    assert found is not None, "the caller's team is there"
    return found


# Across teams: the operator's list.
async def every(source: Source) -> list[Team]:
    rows = await source.fetch(
        """
        SELECT id, number, name, email, status, rate_limit, created_at, daily_quota, monthly_quota,
               email_retention_days, log_retention_days, metrics_retention_days, most_domains,
               most_webhooks, most_api_keys
          FROM teams
         ORDER BY id
        """
    )
    return [Team(**row) for row in rows]


# Across teams: a number arrives without a team.
async def numbered(source: Source, numbers: Sequence[int]) -> list[tuple[int, UUID]]:
    rows = await source.fetch("SELECT number, id FROM teams WHERE number = ANY ($1::bigint[])", numbers)
    return [(row["number"], row["id"]) for row in rows]


# Across teams: the oldest of them is the operator's own.
async def first(source: Source) -> UUID | None:
    # Not by id: that of a demo says a time at which the installation was not there.
    found: UUID | None = await source.fetchval("SELECT id FROM teams ORDER BY number LIMIT 1")
    return found


# Across teams: is this the first start?
async def exists_any(source: Source) -> bool:
    found: bool = await source.fetchval("SELECT EXISTS (SELECT FROM teams)")
    return found


# Across teams: two first starts at once make one team.
async def lock_first_start(source: Source, number: int) -> None:
    await source.execute("SELECT pg_advisory_xact_lock($1)", number)
