"""The runs of one contact, of all automations."""

from __future__ import annotations

from uuid import UUID

from pillarbox.automations.runs import queries
from pillarbox.automations.runs.queries import RunOfContact
from pillarbox.kernel.postgres.database import TeamDb


async def runs_of_contact(db: TeamDb, contact_id: UUID, before: UUID, limit: int) -> list[RunOfContact]:
    """Return the newest runs of a contact before an id, the newest first."""
    return await queries.of_contact(db, contact_id, before, limit)
