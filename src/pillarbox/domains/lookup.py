"""What other slices may ask about a domain."""

from __future__ import annotations

from uuid import UUID

from pillarbox.domains import queries
from pillarbox.kernel.postgres.database import TeamDb


async def hold(db: TeamDb, domain_id: UUID) -> bool:
    """True when the team has this domain; it cannot be deleted before the transaction ends."""
    return await queries.hold(db, domain_id)
