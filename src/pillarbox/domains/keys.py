"""DKIM keys in rotation (contract decision 29; DKIM-04).

    waiting ──► signing ──► retiring ──► gone

A new key waits until a check has seen its record; until then the old one signs. From then on the new one
signs. The old one stays listed, and its record in DNS, for as long as mail signed with it can be under way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.domains import queries
from pillarbox.domains.checks import check_queries
from pillarbox.domains.checks.check_queries import KeyRow
from pillarbox.domains.checks.start import ClaimFirst, schedule_check
from pillarbox.domains.context import DomainContext
from pillarbox.domains.create import make_key
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import NotFound

LISTED_AT_LEAST: Final = timedelta(days=7)
"""How long receivers may still verify mail that they took long before (DKIM-04); the delivery window counts
where it is longer."""


class KeyState(Enum):
    WAITING = "waiting"
    SIGNING = "signing"
    RETIRING = "retiring"


class PublishedKey(NamedTuple):
    """A key whose record should be in DNS."""

    selector: str
    public_key: str
    state: KeyState
    retires_at: datetime | None


class Rotation(NamedTuple):
    """The key that waits now, and whether it is a new one."""

    key: PublishedKey
    new: bool


async def listed(db: TeamDb, domain_id: UUID, now: datetime) -> list[PublishedKey]:
    """Return the keys whose records should be in DNS, the oldest first."""
    rows = await check_queries.keys(db, domain_id)
    return [_listed(row) for row in rows if row.retires_at is None or row.retires_at > now]


async def rotate(db: TeamDb, domain_id: UUID, context: DomainContext) -> Rotation:
    """Give the domain a key that waits for its record, committed, and schedule a check; a key that waits
    already stays. `db` must not be inside a transaction: making a key takes a tenth of a second."""
    made = await make_key(context)
    async with db.transaction() as inner:
        domain = await queries.lock(inner, domain_id)
        if domain is None:
            raise NotFound("Domain")
        if domain.claim_id is not None:
            raise ClaimFirst
        rows = await check_queries.keys(inner, domain_id)
        waiting = next((row for row in rows if row.waiting), None)
        if waiting is None:
            key = replace(made, selector=next_selector(context.here.selector, rows))
            await check_queries.add_waiting_key(inner, domain_id, key)
        await schedule_check(inner, domain_id, context, context.ids.now())
    if waiting is not None:
        return Rotation(_listed(waiting), new=False)
    return Rotation(PublishedKey(key.selector, key.public_key, KeyState.WAITING, None), new=True)


async def switch(db: TeamDb, domain_id: UUID, waiting: KeyRow, now: datetime, window: timedelta) -> None:
    """Let the waiting key sign, and the one before it retire; `window` is how long delivery is tried."""
    await check_queries.retire_key(db, domain_id, now + max(window, LISTED_AT_LEAST))
    await check_queries.activate_key(db, waiting.id)


def next_selector(base: str, rows: Sequence[KeyRow]) -> str:
    """Return a selector that the domain did not have before: `pillarbox2`, `pillarbox3`, …"""
    numbers = [
        int(match[1] or 1)
        for row in rows
        if (match := re.fullmatch(re.escape(base) + r"([0-9]{0,9})", row.selector))
    ]
    return f"{base}{max(numbers, default=0) + 1}" if numbers else base


def _listed(row: KeyRow) -> PublishedKey:
    state = KeyState.SIGNING if row.active else KeyState.WAITING if row.waiting else KeyState.RETIRING
    return PublishedKey(row.selector, row.public_key, state, row.retires_at)
