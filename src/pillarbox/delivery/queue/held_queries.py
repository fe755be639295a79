"""SQL of mail that is put off without an attempt: the relay refuses us (`delivery.smtp.relay_faults`), or
a key is missing (`missing_keys`)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.delivery.items import QUARANTINED, Item, Key
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

HOLD_FOR_KEY: Final = """
    UPDATE deliveries SET owner = NULL, leased_until = NULL, due_at = $6, reason = $7
     WHERE team_id = $1 AND email_id = $2 AND grp = $3 AND owner = $4 AND attempt = $5
"""

# Across teams: whoever waits for one of these keys.
RELEASE_FOR_KEYS: Final = """
    UPDATE deliveries SET due_at = $3, reason = NULL
     WHERE due_at = $1 AND owner IS NULL AND reason = ANY ($2::text[])
"""


async def hold(source: Source, key: Key, owner: UUID, until: datetime, reason: str) -> None:
    """Free an item that this process has, for later."""
    await source.execute(HOLD, *key, owner, until, reason)


async def release(source: Source, now: datetime) -> int:
    """Make due what was put off; returns how many items that were."""
    status: str = await source.execute(RELEASE, now, PREFIX)
    return int(status.rsplit(" ", 1)[-1])


async def reason_of_all(source: Source) -> str | None:
    """Return why mail is held, as the latest attempt found it; None where none is."""
    found: str | None = await source.fetchval(REASON, PREFIX)
    return found


async def hold_for_key(source: Source, item: Item, owner: UUID, reason: str) -> bool:
    """Give the item up until it is released; False when it is not ours any more."""
    status: str = await source.execute(HOLD_FOR_KEY, *item.key, owner, item.attempt, QUARANTINED, reason)
    return status.endswith(" 1")


async def release_for_keys(source: Source, reasons: Sequence[str], now: datetime) -> int:
    """Make due what waits for one of these reasons; returns how many items that were."""
    status: str = await source.execute(RELEASE_FOR_KEYS, QUARANTINED, reasons, now)
    return int(status.rsplit(" ", 1)[-1])
