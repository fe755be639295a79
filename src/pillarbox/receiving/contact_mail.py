"""The received mail of one address."""

from __future__ import annotations

from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.receiving import queries
from pillarbox.receiving.queries import ReceivedFromAddress


async def mail_from(db: TeamDb, address: str, before: UUID, limit: int) -> list[ReceivedFromAddress]:
    """Return the newest emails before an id that have this compared address in From."""
    return await queries.from_address(db, address, before, limit)
