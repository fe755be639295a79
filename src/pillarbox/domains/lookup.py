"""The questions that other slices may ask about a domain."""

from __future__ import annotations

from uuid import UUID

from pillarbox.domains import queries
from pillarbox.domains.queries import Domain, SenderRow
from pillarbox.kernel.postgres.database import TeamDb


async def hold(db: TeamDb, domain_id: UUID) -> bool:
    """Return whether the team has this domain; it cannot be deleted before the transaction ends."""
    return await queries.hold(db, domain_id)


async def named(db: TeamDb, name: str) -> Domain | None:
    """Return the team's domain of that name; it cannot be deleted before the transaction ends."""
    domain_id = await queries.id_of(db, name)
    if domain_id is None or not await queries.hold(db, domain_id):
        return None
    return await queries.get(db, domain_id)


async def get(db: TeamDb, domain_id: UUID) -> Domain | None:
    """Return a domain of the team."""
    return await queries.get(db, domain_id)


async def sender(db: TeamDb, name: str) -> SenderRow | None:
    """Return the domain as mail from it needs it; None where the team has no such domain."""
    return await queries.sender(db, name)
