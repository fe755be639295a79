"""The lock of an inbox (docs/decisions/0091).

Whoever changes threads, messages, drafts, labels or counts of an inbox takes it first, by a statement of its
own: what is read afterwards in the same transaction is what the one before has committed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.inboxes import locking_queries as queries
from pillarbox.inboxes.locking_queries import AddressedInbox, LockedInbox
from pillarbox.inboxes.waiting import changes
from pillarbox.kernel.postgres.database import Connection

InboxKey = tuple[UUID, UUID]
"""A team and one of its inboxes."""

BRIEF_MS: Final = 250
"""How long many may wait for the lock of one inbox: longer than a commit takes."""


async def lock(conn: Connection, keys: Collection[InboxKey]) -> dict[InboxKey, LockedInbox]:
    """Lock these inboxes until the transaction ends, and return those that exist."""
    if not keys:
        return {}
    locked = await queries.lock(conn, sorted(set(keys)))
    # Whoever takes the lock is about to change what those see who wait for the inbox.
    await changes.changed(conn, [inbox.id for inbox in locked])
    return {(inbox.team_id, inbox.id): inbox for inbox in locked}


class LockTimeout(NamedTuple):
    """Each lock is waited for, but only for a moment, and those of the inboxes `without` are not taken."""

    without: frozenset[UUID]


async def lock_at(
    conn: Connection, addresses: Collection[str], waited: InboxKey | LockTimeout | None = None
) -> dict[str, AddressedInbox]:
    """Lock the inboxes that these addresses mean, as far as nobody else has; addresses that mean none are not
    in the answer. For the lock of one inbox it may be `waited`, or for all of them briefly: that raises
    LockNotAvailableError."""
    if isinstance(waited, LockTimeout):
        inboxes = await queries.lock_in_order(conn, addresses, waited.without, BRIEF_MS)
    else:
        inboxes = await queries.lock_at(conn, addresses, waited)
    locked = {addressed.inbox[1] for addressed in inboxes.values() if addressed.indexed_up_to is not None}
    await changes.changed(conn, locked)
    return inboxes
