"""Mail that waits because the relay refuses us (`delivery.smtp.relay_faults`): put off without an attempt."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.delivery.items import Key
from pillarbox.delivery.smtp.relay_faults import PREFIX
from pillarbox.kernel.postgres.database import Source

# The attempt ended and counts for nothing: the window of an item that was never begun does not run, and no
# process died of it.
HOLD: Final = """
    UPDATE deliveries d
       SET owner = NULL, leased_until = NULL, due_at = $5, reason = $6, begun = 0,
           first_attempt_at = CASE WHEN d.tries > 0 OR d.reached OR d.uncertain > 0
                                   THEN d.first_attempt_at END
     WHERE d.team_id = $1 AND d.email_id = $2 AND d.grp = $3 AND d.owner = $4
"""

# Across teams: the relay is the installation's.
RELEASE: Final = """
    UPDATE deliveries SET due_at = $1 WHERE owner IS NULL AND due_at > $1 AND starts_with(reason, $2)
"""

# Across teams, as above.
REASON: Final = """
    SELECT reason FROM deliveries WHERE starts_with(reason, $1) ORDER BY due_at DESC LIMIT 1
"""


async def hold(source: Source, key: Key, owner: UUID, until: datetime, reason: str) -> None:
    """Free an item that this process has, for later."""
    await source.execute(HOLD, *key, owner, until, reason)


async def release(source: Source, now: datetime) -> int:
    """Make due what was put off; returns how many items that were."""
    status: str = await source.execute(RELEASE, now, PREFIX)
    return int(status.rsplit(" ", 1)[-1])


async def reason_of_all(source: Source) -> str | None:
    """Why mail is held, as the latest attempt found it; None where none is."""
    found: str | None = await source.fetchval(REASON, PREFIX)
    return found
