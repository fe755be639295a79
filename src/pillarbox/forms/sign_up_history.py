"""The sign-ups of one address, of all forms."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pillarbox.forms import sign_up_queries as queries
from pillarbox.forms.sign_up_queries import SignUpOfAddress
from pillarbox.kernel.postgres.database import TeamDb


async def sign_ups_of_address(
    db: TeamDb, address: str, before: tuple[datetime, UUID], limit: int
) -> list[SignUpOfAddress]:
    """Return the newest sign-ups of a compared address before an instant and id."""
    return await queries.of_address_before(db, address, before, limit)
