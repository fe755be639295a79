"""What the owner of a domain name does with it: asked before the name goes to another team."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

SENT_SINCE = """
    SELECT EXISTS (
        SELECT FROM timeline t
          JOIN emails e ON e.team_id = t.team_id AND e.id = t.email_id
         WHERE t.team_id = $1 AND t.at >= $2 AND t.kind = 'sent' AND e.domain_id = $3
    )
"""

SCHEDULED = """
    SELECT EXISTS (
        SELECT FROM deliveries d
          JOIN emails e ON e.team_id = d.team_id AND e.id = d.email_id
         WHERE d.team_id = $1 AND NOT d.released AND e.domain_id = $2
    )
"""


class DomainActivity:
    """Reads it from the timeline and the queue."""

    async def sent_since(self, db: TeamDb, domain_id: UUID, since: datetime) -> bool:
        """Whether mail from the domain left after `since`."""
        found: bool = await db.value(SENT_SINCE, since, domain_id)
        return found

    async def has_scheduled(self, db: TeamDb, domain_id: UUID) -> bool:
        """Whether mail from the domain waits for its time."""
        found: bool = await db.value(SCHEDULED, domain_id)
        return found
