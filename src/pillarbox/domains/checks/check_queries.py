"""SQL of the checks, and of keys in rotation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.domains.checks.transitions import Abilities
from pillarbox.domains.queries import StoredKey
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.sealed_values import SealedColumn


class CheckState(NamedTuple):
    """The results of checks that a domain keeps besides the states of its records. `owner` is the team that
    owns its name; `several_teams` is true where there is more than one team."""

    sending_ok: bool
    receiving_ok: bool
    tracking_ok: bool
    trusted: bool
    verifying_since: datetime | None
    checked_at: datetime | None
    findings: str
    owner: UUID | None
    several_teams: bool

    @property
    def abilities(self) -> Abilities:
        return Abilities(self.sending_ok, self.receiving_ok, self.tracking_ok)


class KeyRow(NamedTuple):
    """A DKIM key without its private half."""

    id: UUID
    selector: str
    public_key: str
    active: bool
    created_at: datetime
    retires_at: datetime | None

    @property
    def waiting(self) -> bool:
        """True for a key that signs nothing before its record has been seen."""
        return not self.active and self.retires_at is None


# Across teams: who owns the name, and whether there is another team.
async def checked(db: TeamDb, domain_id: UUID) -> CheckState | None:
    return await db.one(
        CheckState,
        """
        SELECT d.sending_ok, d.receiving_ok, d.tracking_ok, d.trusted, d.verifying_since, d.checked_at,
               d.findings,
               (SELECT h.team_id FROM directory_domains h WHERE h.name = d.name AND h.owned) AS owner,
               EXISTS (SELECT FROM teams t WHERE t.id <> $1) AS several_teams
          FROM domains d
         WHERE d.team_id = $1 AND d.id = $2
        """,
        domain_id,
    )


async def keys(db: TeamDb, domain_id: UUID) -> list[KeyRow]:
    """Return the keys of a domain, the oldest first."""
    return await db.all(
        KeyRow,
        """
        SELECT id, selector, public_key, active, created_at, retires_at
          FROM dkim_keys
         WHERE team_id = $1 AND domain_id = $2 AND algorithm = 'rsa'
         ORDER BY id
        """,
        domain_id,
    )


async def begin(db: TeamDb, domain_id: UUID, states: Mapping[str, Any], now: datetime) -> None:
    """Restart the clock of the checks."""
    await db.run(
        "UPDATE domains SET records = $3, verifying_since = $4 WHERE team_id = $1 AND id = $2",
        domain_id,
        msgspec.json.encode(states).decode(),
        now,
    )


async def store(
    db: TeamDb,
    domain_id: UUID,
    states: Mapping[str, Any],
    abilities: Abilities,
    findings: str,
    now: datetime,
) -> None:
    """Store the result of a check; the domain must be locked."""
    await db.run(
        """
        UPDATE domains
           SET records = $3, sending_ok = $4, receiving_ok = $5, tracking_ok = $6, findings = $7,
               checked_at = $8
         WHERE team_id = $1 AND id = $2
        """,
        domain_id,
        msgspec.json.encode(states).decode(),
        abilities.sending,
        abilities.receiving,
        abilities.tracking,
        findings,
        now,
    )


async def add_waiting_key(db: TeamDb, domain_id: UUID, key: StoredKey) -> None:
    await db.run(
        """
        INSERT INTO dkim_keys (team_id, id, domain_id, selector, algorithm, public_key, private_key,
                               active, created_at)
        VALUES ($1, $2, $3, $4, 'rsa', $5, $6, false, $7)
        """,
        key.id,
        domain_id,
        key.selector,
        key.public_key,
        key.sealed,
        key.created_at,
    )


async def retire_key(db: TeamDb, domain_id: UUID, retires_at: datetime) -> None:
    """Retire the key that signs now: it signs nothing more, and is listed until `retires_at`."""
    await db.run(
        """
        UPDATE dkim_keys SET active = false, retires_at = $3
         WHERE team_id = $1 AND domain_id = $2 AND algorithm = 'rsa' AND active
        """,
        domain_id,
        retires_at,
    )


async def activate_key(db: TeamDb, key_id: UUID) -> bool:
    """Let a waiting key sign; False where it does not wait any more."""
    return bool(
        await db.run(
            """
            UPDATE dkim_keys SET active = true
             WHERE team_id = $1 AND id = $2 AND NOT active AND retires_at IS NULL
            """,
            key_id,
        )
    )


async def drop_retired(db: TeamDb, domain_id: UUID, now: datetime) -> int:
    """Remove keys whose time is over; returns how many there were."""
    return await db.run(
        "DELETE FROM dkim_keys WHERE team_id = $1 AND domain_id = $2 AND NOT active AND retires_at <= $3",
        domain_id,
        now,
    )


# Across teams: what the key ring has sealed.
DKIM_KEYS: Final = SealedColumn(
    table="dkim_keys",
    sentence="The DKIM key of the domain {owner}",
    cure="`pillarbox domains rotate-dkim` gives the domain a new one.",
    read="""
    SELECT k.team_id, k.id, k.private_key AS sealed, d.name AS owner
      FROM dkim_keys k
      JOIN domains d ON d.team_id = k.team_id AND d.id = k.domain_id
     ORDER BY k.team_id, k.id
    """,
    replace="""
    UPDATE dkim_keys SET private_key = $4
     WHERE team_id = $1 AND id = $2 AND private_key = $3
    """,
)
