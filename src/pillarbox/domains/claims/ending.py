"""Claims that end without a transfer, and what becomes of their placeholders."""

from __future__ import annotations

from uuid import UUID

from pillarbox.domains.claims import queries
from pillarbox.domains.claims.policy import JOB, ClaimFailure, Status
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work import job_queries


async def end(
    db: TeamDb, claim_id: UUID, domain_id: UUID, status: Status, failure: ClaimFailure | None = None
) -> bool:
    """End an open claim; its placeholder is an ordinary domain from the commit on. False where the claim
    has ended already."""
    if not await queries.close(db, claim_id, status, failure and failure.value):
        return False
    await queries.free_place(db, claim_id, domain_id)
    await drop_job(db, claim_id)
    return True


async def cancel(db: TeamDb, claim_id: UUID | None, domain_id: UUID) -> None:
    """Cancel the open claim of a domain that is about to be deleted; older claims forget the domain."""
    if claim_id is not None:
        await queries.close(db, claim_id, Status.CANCELED)
        await drop_job(db, claim_id)
    await queries.forget_domain(db, domain_id)


async def end_other_claims(
    db: TeamDb, name: str, status: Status, failure: ClaimFailure | None = None
) -> None:
    """End every open claim of another team for the name. The name must be held."""
    for other in await queries.open_claims(db.connection, name):
        if other.team_id != db.team_id:
            await end(TeamDb(db.connection, other.team_id), other.id, other.domain_id, status, failure)


async def drop_job(db: TeamDb, claim_id: UUID) -> None:
    """Drop the job: nothing is done for the claim any more."""
    await job_queries.remove_kind(db, claim_id, JOB)
