"""The lock by which deleting a segment waits for those who write its members (docs/decisions/0060)."""

from __future__ import annotations

from pillarbox.contacts import segment_queries
from pillarbox.kernel.postgres.database import TeamDb


async def hold_alone(db: TeamDb) -> None:
    """Wait until nobody writes members of the team's segments; nobody begins until the transaction ends."""
    await segment_queries.lock_members_alone(db)
