"""Deleting a domain, by its team or because another team claimed the name (domains.md section 4.5)."""

from __future__ import annotations

from uuid import UUID

from pillarbox.api_keys import keys
from pillarbox.directory import domains as directory
from pillarbox.domains import queries
from pillarbox.domains.claims.ending import cancel, end_other_claims
from pillarbox.domains.claims.policy import ClaimFailure, Status
from pillarbox.domains.context import DomainContext
from pillarbox.domains.domain_events import DELETED, publish
from pillarbox.domains.queries import Domain
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.kernel.work import job_queries


async def delete(db: TeamDb, domain_id: UUID, context: DomainContext) -> str:
    """Remove the domain with all that follows, in the transaction that `db` stands for. Returns its name.

    Emails keep its id and name; those that wait end `failed` when they are due. Claims of other teams for a
    name that this team owned have nothing to claim any more.
    """
    name = await queries.name_of(db, domain_id)
    if name is None:
        raise NotFound("Domain")
    await directory.hold_name(db, name)
    domain = await queries.lock(db, domain_id)
    if domain is None:
        raise NotFound("Domain")
    owner = await directory.owner(db.connection, name)
    if owner is not None and owner.team_id == db.team_id:
        await end_other_claims(db, name, Status.FAILED, ClaimFailure.OWNER_REMOVED_DOMAIN)
    await take_out(db, domain, context)
    return name


async def take_out(db: TeamDb, domain: Domain, context: DomainContext) -> None:
    """Remove the domain and its keys, and tell what hung on it. The name must be held and the domain locked,
    or a key that is just being made for it would stay active."""
    await keys.deactivate(db, domain.id)
    await cancel(db, domain.claim_id, domain.id)
    await job_queries.remove(db, domain.id)
    await context.dependents.remove(db, domain.id)
    await queries.delete(db, domain.id)
    await directory.remove(db, domain.name)
    await publish(db, context, DELETED, domain)
