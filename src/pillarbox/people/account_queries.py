"""SQL of one's own account. People belong to no team."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Source


@dataclass(frozen=True, slots=True)
class ShownSession:
    """A session as its person sees it."""

    id: UUID
    ways: list[str]
    created_at: datetime
    used_at: datetime
    address: str | None
    user_agent: str | None


@dataclass(frozen=True, slots=True)
class AccountState:
    """The facts that a person needs to prove their identity."""

    has_password: bool
    password_changed_at: datetime | None
    factor_since: datetime | None
    codes_left: int
    may_use_password: bool


async def sessions_of(
    source: Source, person_id: UUID, idle_since: datetime, now: datetime
) -> list[ShownSession]:
    """Return the sessions that have not ended, the most recently used first."""
    rows = await source.fetch(
        """
        SELECT id, ways, created_at, used_at, address, user_agent
          FROM person_sessions
         WHERE person_id = $1 AND stage = 'full' AND used_at > $2 AND ends_at > $3
         ORDER BY used_at DESC, id
        """,
        person_id,
        idle_since,
        now,
    )
    return [ShownSession(**row) for row in rows]


async def state_of(source: Source, person_id: UUID) -> AccountState | None:
    row = await source.fetchrow(
        """
        SELECT password IS NOT NULL AS has_password, password_changed_at, totp_confirmed_at AS factor_since,
               (SELECT count(*) FROM person_recovery_codes c
                 WHERE c.person_id = p.id AND c.used_at IS NULL) AS codes_left, may_use_password
          FROM people p
         WHERE id = $1
        """,
        person_id,
    )
    return None if row is None else AccountState(**row)


async def has_second_factor(source: Source, person_id: UUID) -> bool:
    """Return whether a login of the person needs more than a password, or may do without one."""
    found: bool | None = await source.fetchval(
        """
        SELECT totp_confirmed_at IS NOT NULL
               OR EXISTS (SELECT FROM person_passkeys k WHERE k.person_id = p.id)
          FROM people p
         WHERE id = $1
        """,
        person_id,
    )
    return bool(found)
