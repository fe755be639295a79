"""Items whose DKIM key cannot be decrypted are held, with the reason, and not tried again and again.

The key ring of a process may lack a key that another process has, or that was lost. Such an item waits like a
quarantined one: `pillarbox queue` shows it, `pillarbox queue retry` lets it go. It also goes by itself as
soon as a process whose ring has the key sees it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import asyncpg

from pillarbox.delivery.queue import held_queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.security.secrets import KeyMissing, KeyRing, KeyRingError
from pillarbox.kernel.work.periodic import Periodic

JOB_RELEASE = "delivery.release_held_for_keys"
RELEASE_EVERY = timedelta(minutes=5)

DAMAGED = (
    "Its DKIM key is damaged and cannot be decrypted; "
    "`pillarbox domains rotate-dkim` gives the domain a new one."
)


def reason_of(trouble: KeyRingError) -> str:
    """Return why an item is held, as the queue shows it."""
    return waits_for(trouble.key_id) if isinstance(trouble, KeyMissing) else DAMAGED


def waits_for(key_id: str) -> str:
    return (
        f"Its DKIM key is encrypted with the key {key_id}, which the key ring does not have; "
        "it waits for that key."
    )


async def release(source: Source, key_ids: Iterable[str], now: datetime) -> int:
    """Make due what waits for one of these keys; returns how many items that were."""
    return await held_queries.release_for_keys(source, [waits_for(key) for key in key_ids], now)


def missing_keys_periodic(pool: asyncpg.Pool, clock: Clock, ring: KeyRing) -> list[Periodic]:
    """Release what waits for a key that this process has."""

    async def work() -> str:
        return f"{await release(pool, ring.key_ids, clock.now())} items released"

    return [Periodic(JOB_RELEASE, RELEASE_EVERY, work, quiet=True)]
