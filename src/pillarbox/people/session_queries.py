"""SQL of the sessions of people. A person is of no team, so most statements name none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import changed


@dataclass(frozen=True, slots=True)
class PersonSession:
    """A session that counts, with its person."""

    hash: bytes
    id: UUID
    person_id: UUID
    email: str
    name: str | None
    stage: str
    ways: list[str]
    team_id: UUID | None
    used_at: datetime
    ends_at: datetime
    confirmed_at: datetime
    is_operator: bool


@dataclass(frozen=True, slots=True)
class LookedAtTeam:
    """A team that a person belongs to, with what every request of its members needs."""

    team_id: UUID
    name: str
    role: str
    status: str
    number: int
    rate_limit: int | None
    daily_quota: int | None
    monthly_quota: int | None
    log_days: int | None
    metrics_days: int | None


class NewSession(NamedTuple):
    """A session that begins."""

    hash: bytes
    id: UUID
    person_id: UUID
    stage: str
    ways: Sequence[str]
    team_id: UUID | None
    created_at: datetime
    ends_at: datetime
    address: str | None
    user_agent: str | None


async def session(source: Source, hash_: bytes, idle_since: datetime, now: datetime) -> PersonSession | None:
    """Return the session, unless it has ended."""
    row = await source.fetchrow(
        """
        SELECT s.hash, s.id, s.person_id, p.email, p.name, s.stage, s.ways, s.team_id, s.used_at, s.ends_at,
               s.confirmed_at, p.is_operator
          FROM person_sessions s
          JOIN people p ON p.id = s.person_id
         WHERE s.hash = $1 AND s.used_at > $2 AND s.ends_at > $3 AND p.disabled_at IS NULL
        """,
        hash_,
        idle_since,
        now,
    )
    return None if row is None else PersonSession(**row)


# Across teams: those of one person.
async def looked_at(source: Source, person_id: UUID, team_id: UUID | None) -> LookedAtTeam | None:
    """Return the team that is looked at, or the first one of those that the person belongs to."""
    row = await source.fetchrow(
        """
        SELECT m.team_id, t.name, m.role, t.status, t.number, t.rate_limit, t.daily_quota, t.monthly_quota,
               t.log_retention_days AS log_days, t.metrics_retention_days AS metrics_days
          FROM team_members m
          JOIN teams t ON t.id = m.team_id
         WHERE m.person_id = $1 AND t.status <> 'disabled'
         ORDER BY m.team_id = $2::uuid DESC NULLS LAST, m.created_at, m.team_id
         LIMIT 1
        """,
        person_id,
        team_id,
    )
    return None if row is None else LookedAtTeam(**row)


async def is_known_address(source: Source, person_id: UUID, address: str | None) -> bool:
    """Tell whether the person has a session that began at this address."""
    found: bool = await source.fetchval(
        """
        SELECT EXISTS (SELECT FROM person_sessions WHERE person_id = $1 AND address = $2 AND stage = 'full')
        """,
        person_id,
        address,
    )
    return found


async def begin(conn: Connection, session: NewSession) -> bool:
    """Store a session; False where the person is gone or disabled."""
    # The row is locked: whoever shuts the person out at this moment ends this session too.
    begun = await conn.fetchval(
        """
        INSERT INTO person_sessions (hash, id, person_id, stage, ways, team_id, created_at, used_at, ends_at,
                                     confirmed_at, address, user_agent)
        SELECT $1, $2, p.id, $4, $5, $6, $7, $7, $8, $7, $9, $10
          FROM people p
         WHERE p.id = $3 AND p.disabled_at IS NULL
           FOR NO KEY UPDATE OF p
        RETURNING id
        """,
        *session,
    )
    return begun is not None


async def renew(
    conn: Connection, hash_: bytes, new_hash: bytes, ways: Sequence[str], now: datetime, longest: timedelta
) -> UUID | None:
    """Make the session full and confirmed, under another hash; return its person. None where it has ended."""
    person_id: UUID | None = await conn.fetchval(
        """
    UPDATE person_sessions
       SET hash = $2, stage = 'full', ways = $3, confirmed_at = $4, used_at = $4, ends_at = created_at + $5
     WHERE hash = $1 AND ends_at > $4
    RETURNING person_id
        """,
        hash_,
        new_hash,
        ways,
        now,
        longest,
    )
    return person_id


async def end_beyond(conn: Connection, person_id: UUID, stage: str, newest: bytes, limit: int) -> None:
    """End the sessions of a person in a stage but the newest one and `limit` that were used last."""
    # The one of that hash is the newest, whatever the clock says.
    await conn.execute(
        """
        DELETE FROM person_sessions
         WHERE hash IN (SELECT hash
                          FROM person_sessions
                         WHERE person_id = $1 AND stage = $2 AND hash <> $3
                         ORDER BY used_at DESC, id DESC
                        OFFSET $4)
        """,
        person_id,
        stage,
        newest,
        limit,
    )


async def look_at(source: Source, hash_: bytes, team_id: UUID) -> None:
    """Let the session look at this team."""
    await source.execute("UPDATE person_sessions SET team_id = $2 WHERE hash = $1", hash_, team_id)


async def mark_used(source: Source, hash_: bytes, now: datetime) -> None:
    """Note when the session was used."""
    await source.execute(
        "UPDATE person_sessions SET used_at = $2 WHERE hash = $1 AND used_at < $2", hash_, now
    )


async def end(source: Source, hash_: bytes) -> UUID | None:
    """End a session; return whose it was."""
    person_id: UUID | None = await source.fetchval(
        "DELETE FROM person_sessions WHERE hash = $1 RETURNING person_id", hash_
    )
    return person_id


async def end_one(source: Source, person_id: UUID, session_id: UUID) -> bool:
    """End one session of the person; False where there is none of that id."""
    status = await source.execute(
        "DELETE FROM person_sessions WHERE person_id = $1 AND id = $2", person_id, session_id
    )
    return changed(status) > 0


async def end_all(source: Source, person_id: UUID, kept: bytes | None) -> int:
    """End all sessions of the person but the one of this hash; return how many there were."""
    return changed(
        await source.execute(
            """
            DELETE FROM person_sessions WHERE person_id = $1 AND ($2::bytea IS NULL OR hash <> $2)
            """,
            person_id,
            kept,
        )
    )


async def remove_old(source: Source, now: datetime, idle_since: datetime, limit: int) -> int:
    """Remove up to `limit` sessions that have ended; return how many."""
    return changed(
        await source.execute(
            """
            DELETE FROM person_sessions
             WHERE hash IN (SELECT hash FROM person_sessions WHERE ends_at < $1 OR used_at < $2 LIMIT $3)
            """,
            now,
            idle_since,
            limit,
        )
    )
