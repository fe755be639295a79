"""SQL of the claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.domains.claims.policy import Status
from pillarbox.kernel.postgres.database import Connection, Source, TeamDb
from pillarbox.kernel.work.collectors import changed


class ClaimOptions(NamedTuple):
    """The options of a claim in normal form; a claim with the same options is the same claim."""

    region: str
    return_path: str
    tracking_subdomain: str | None
    open_tracking: bool
    click_tracking: bool


@dataclass(frozen=True, slots=True)
class DomainClaim:
    """One claim of a team."""

    id: UUID
    name: str
    domain_id: UUID | None
    token: str
    options: ClaimOptions
    status: Status
    blocked_reason: str | None
    failure_reason: str | None
    created_at: datetime
    expires_at: datetime
    checking_since: datetime | None
    blocked_since: datetime | None


class OpenClaim(NamedTuple):
    """An open claim of any team for a name."""

    team_id: UUID
    id: UUID
    domain_id: UUID


def _claim(*, status: str, **columns: Any) -> DomainClaim:
    options = ClaimOptions(*[columns.pop(name) for name in ClaimOptions._fields])
    return DomainClaim(**columns, options=options, status=Status(status))


async def insert(db: TeamDb, claim: DomainClaim) -> None:
    await db.run(
        """
        INSERT INTO domain_claims (team_id, id, name, domain_id, token, status, created_at, expires_at,
                                   region, return_path, tracking_subdomain, open_tracking, click_tracking)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        """,
        claim.id,
        claim.name,
        claim.domain_id,
        claim.token,
        claim.status.value,
        claim.created_at,
        claim.expires_at,
        *claim.options,
    )


async def get(db: TeamDb, claim_id: UUID) -> DomainClaim | None:
    return await db.one(
        _claim,
        """
        SELECT id, name, domain_id, token, region, return_path, tracking_subdomain, open_tracking,
               click_tracking, status, blocked_reason, failure_reason, created_at, expires_at, checking_since,
               blocked_since
          FROM domain_claims
         WHERE team_id = $1 AND id = $2
        """,
        claim_id,
    )


async def latest(db: TeamDb, domain_id: UUID) -> DomainClaim | None:
    """Return the newest claim that had this domain as its placeholder."""
    return await db.one(
        _claim,
        """
        SELECT id, name, domain_id, token, region, return_path, tracking_subdomain, open_tracking,
               click_tracking, status, blocked_reason, failure_reason, created_at, expires_at, checking_since,
               blocked_since
          FROM domain_claims
         WHERE team_id = $1 AND domain_id = $2
         ORDER BY id DESC
         LIMIT 1
        """,
        domain_id,
    )


async def start_checks(db: TeamDb, claim_id: UUID, now: datetime) -> None:
    await db.run("UPDATE domain_claims SET checking_since = $3 WHERE team_id = $1 AND id = $2", claim_id, now)


async def mark_verified(db: TeamDb, claim_id: UUID) -> bool:
    """Take the proof; False where the claim is not pending any more."""
    return bool(
        await db.run(
            """
            UPDATE domain_claims SET status = 'verified'
             WHERE team_id = $1 AND id = $2 AND status = 'pending'
            """,
            claim_id,
        )
    )


async def block(db: TeamDb, claim_id: UUID, reason: str, now: datetime) -> None:
    await db.run(
        """
        UPDATE domain_claims
           SET status = 'blocked', blocked_reason = $3, blocked_since = coalesce(blocked_since, $4)
         WHERE team_id = $1 AND id = $2 AND status IN ('verified', 'blocked')
        """,
        claim_id,
        reason,
        now,
    )


async def close(db: TeamDb, claim_id: UUID, status: Status, failure: str | None = None) -> bool:
    """End an open claim; False where it has ended already."""
    return bool(
        await db.run(
            """
            UPDATE domain_claims
               SET status = $3, failure_reason = $4, blocked_reason = NULL
             WHERE team_id = $1 AND id = $2 AND status IN ('pending', 'verified', 'blocked')
            """,
            claim_id,
            status.value,
            failure,
        )
    )


async def forget_domain(db: TeamDb, domain_id: UUID) -> None:
    """Remove a domain that is being deleted from its claims."""
    await db.run("UPDATE domain_claims SET domain_id = NULL WHERE team_id = $1 AND domain_id = $2", domain_id)


async def free_place(db: TeamDb, claim_id: UUID, domain_id: UUID) -> None:
    """Make the domain an ordinary one from now on."""
    await db.run(
        "UPDATE domains SET claim_id = NULL WHERE team_id = $1 AND claim_id = $2 AND id = $3",
        claim_id,
        domain_id,
    )


async def reuse_place(db: TeamDb, domain_id: UUID, claim_id: UUID, options: ClaimOptions) -> None:
    """Make a former placeholder that of another claim, with the options that it asked for."""
    await db.run(
        """
        UPDATE domains
           SET claim_id = $3, region = $4, return_path = $5, tracking_subdomain = $6, open_tracking = $7,
               click_tracking = $8, records = '{}', findings = '{}', verifying_since = NULL,
               checked_at = NULL, sending_ok = false, receiving_ok = false, tracking_ok = false
         WHERE team_id = $1 AND id = $2
        """,
        domain_id,
        claim_id,
        *options,
    )


# Across teams: whoever else wants the name. Placeholders stand in the directory like every domain.
async def open_claims(conn: Connection, name: str) -> Sequence[OpenClaim]:
    rows = await conn.fetch(
        """
        SELECT d.team_id, d.claim_id AS id, d.id AS domain_id
          FROM directory_domains h
          JOIN domains d ON d.team_id = h.team_id AND d.id = h.domain_id
         WHERE h.name = $1 AND d.claim_id IS NOT NULL
         ORDER BY d.team_id
           FOR UPDATE OF d
        """,
        name,
    )
    return [OpenClaim(**row) for row in rows]


async def take_over(db: TeamDb, domain_id: UUID, claim_id: UUID) -> None:
    """Make the placeholder the domain from the commit on; none of its records has been checked yet."""
    await db.run(
        """
        UPDATE domains
           SET claim_id = NULL, records = '{}', findings = '{}', verifying_since = NULL, checked_at = NULL,
               sending_ok = false, receiving_ok = false, tracking_ok = false
         WHERE team_id = $1 AND id = $2 AND claim_id = $3
        """,
        domain_id,
        claim_id,
    )


# Across teams: claims that nobody can look at any more.
async def remove_forgotten(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` claims from before an instant that are over and not the latest of their domain;
    return how many."""
    return changed(
        await source.execute(
            """
        WITH old AS MATERIALIZED (
            SELECT c.team_id, c.id
              FROM domain_claims c
             WHERE c.created_at < $1 AND c.status NOT IN ('pending', 'verified', 'blocked')
               AND (c.domain_id IS NULL
                    OR EXISTS (SELECT FROM domain_claims n
                                WHERE n.team_id = c.team_id AND n.domain_id = c.domain_id AND n.id > c.id))
             LIMIT $2
               FOR UPDATE SKIP LOCKED
        )
        DELETE FROM domain_claims c USING old WHERE c.team_id = old.team_id AND c.id = old.id
            """,
            before,
            limit,
        )
    )
