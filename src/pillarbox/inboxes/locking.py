"""The lock of an inbox (docs/decisions/0091).

Whoever changes threads, messages, drafts, labels or counts of an inbox takes it first, by a statement of its
own: what is read afterwards in the same transaction is what the one before has committed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.inboxes.waiting import changes
from pillarbox.kernel.postgres.database import LOCK_TIMEOUT_MS, Connection

InboxKey = tuple[UUID, UUID]
"""A team and one of its inboxes."""

# Across teams: each key names its team.
LOCK: Final = """
    SELECT i.team_id, i.id, i.email_address, i.receiving_address, i.from_name, i.domain_id
      FROM unnest($1::uuid[], $2::uuid[]) AS k (team_id, id)
      JOIN inboxes i ON i.team_id = k.team_id AND i.id = k.id
     ORDER BY i.team_id, i.id
       FOR NO KEY UPDATE OF i
"""

# For addresses, of whichever team, in the order of all; but for the inboxes $2. A lock is waited for so long
# ($3), and whatever else this transaction waits for as long as usual ($4): the parts are carried out in this
# order, because each needs a value of the one before.
LOCK_IN_ORDER: Final = """
    WITH briefly AS MATERIALIZED (
        SELECT set_config('lock_timeout', $3, true) AS milliseconds
    ), locked AS MATERIALIZED (
        SELECT i.team_id, i.id, i.described_to
          FROM directory_inboxes d
          JOIN inboxes i ON i.team_id = d.team_id AND i.id = d.inbox_id
         WHERE d.address = ANY ($1::text[]) AND i.id <> ALL ($2::uuid[])
           AND (SELECT milliseconds FROM briefly) IS NOT NULL
         ORDER BY i.team_id, i.id
           FOR NO KEY UPDATE OF i
    ), usually AS MATERIALIZED (
        SELECT set_config('lock_timeout', $4, true) AS milliseconds
          FROM (SELECT count(*) FROM locked) AS l
    )
    SELECT d.address, d.team_id, d.inbox_id AS id,
           (SELECT l.described_to FROM locked l
             WHERE l.team_id = d.team_id AND l.id = d.inbox_id LIMIT 1) AS described_to,
           EXISTS (SELECT FROM webhooks w
                    WHERE w.team_id = d.team_id AND w.status = 'enabled') AS has_webhooks
      FROM directory_inboxes d
     WHERE d.address = ANY ($1::text[]) AND (SELECT milliseconds FROM usually) IS NOT NULL
"""

# The same without waiting, but for one inbox. That lock is waited for while no other is held: the count
# makes it the first. What is locked already is left out.
LOCK_AT: Final = """
    WITH waited AS MATERIALIZED (
        SELECT i.id
          FROM inboxes i
         WHERE i.team_id = $2 AND i.id = $3
           FOR NO KEY UPDATE
    ), locked AS MATERIALIZED (
        SELECT i.team_id, i.id, i.described_to
          FROM directory_inboxes d
          JOIN inboxes i ON i.team_id = d.team_id AND i.id = d.inbox_id
         WHERE d.address = ANY ($1::text[]) AND (SELECT count(*) FROM waited) >= 0
           FOR NO KEY UPDATE OF i SKIP LOCKED
    )
    SELECT d.address, d.team_id, d.inbox_id AS id,
           (SELECT l.described_to FROM locked l
             WHERE l.team_id = d.team_id AND l.id = d.inbox_id LIMIT 1) AS described_to,
           EXISTS (SELECT FROM webhooks w
                    WHERE w.team_id = d.team_id AND w.status = 'enabled') AS has_webhooks
      FROM directory_inboxes d
     WHERE d.address = ANY ($1::text[])
"""


BRIEF_MS: Final = 250
"""How long many may wait for the lock of one inbox: longer than a commit takes."""


class LockedInbox(NamedTuple):
    """What sending and receiving need of an inbox."""

    team_id: UUID
    id: UUID
    email_address: str
    receiving_address: str | None
    from_name: str | None
    domain_id: UUID


async def lock(conn: Connection, keys: Collection[InboxKey]) -> dict[InboxKey, LockedInbox]:
    """Until the transaction ends nobody else changes anything of these inboxes. Those that are gone, or
    never were, are not in the answer."""
    if not keys:
        return {}
    rows = await conn.fetch(LOCK, *map(list, zip(*sorted(set(keys)), strict=True)))
    # Whoever takes the lock is about to change what those see who wait for the inbox.
    await changes.changed(conn, [row["id"] for row in rows])
    return {(row["team_id"], row["id"]): LockedInbox(**row) for row in rows}


class AddressedInbox(NamedTuple):
    """An inbox that an address means. `indexed_up_to`: as far as this id searches know its messages
    (docs/decisions/0100); None where somebody else has its lock. `has_webhooks`: somebody may want its
    events."""

    inbox: InboxKey
    indexed_up_to: UUID | None
    has_webhooks: bool


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
        limits = (str(BRIEF_MS), str(LOCK_TIMEOUT_MS))
        rows = await conn.fetch(LOCK_IN_ORDER, list(addresses), list(waited.without), *limits)
    else:
        rows = await conn.fetch(LOCK_AT, list(addresses), *(waited or (None, None)))
    await changes.changed(conn, {row["id"] for row in rows if row["described_to"] is not None})
    return {
        row["address"]: AddressedInbox((row["team_id"], row["id"]), row["described_to"], row["has_webhooks"])
        for row in rows
    }
