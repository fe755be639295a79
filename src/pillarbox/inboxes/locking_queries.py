"""SQL that locks inboxes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from pillarbox.inboxes.policy.senders import SenderRules
from pillarbox.kernel.postgres.database import LOCK_TIMEOUT_MS, Connection

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
           coalesce((SELECT true
                       FROM webhooks w
                      WHERE w.team_id = d.team_id AND w.status = 'enabled'
                      LIMIT 1), false) AS has_webhooks,
           p.allowed_senders, p.blocked_senders
      FROM directory_inboxes d
      LEFT JOIN inbox_policies p ON p.team_id = d.team_id AND p.inbox_id = d.inbox_id
     WHERE d.address = ANY ($1::text[]) AND (SELECT milliseconds FROM usually) IS NOT NULL
"""

# The same without waiting, but for one inbox. That lock is waited for while no other is held: the count
# makes it the first. What is locked already is left out. EXISTS might become a hash of all webhooks.
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
           coalesce((SELECT true
                       FROM webhooks w
                      WHERE w.team_id = d.team_id AND w.status = 'enabled'
                      LIMIT 1), false) AS has_webhooks,
           p.allowed_senders, p.blocked_senders
      FROM directory_inboxes d
      LEFT JOIN inbox_policies p ON p.team_id = d.team_id AND p.inbox_id = d.inbox_id
     WHERE d.address = ANY ($1::text[])
"""


class LockedInbox(NamedTuple):
    """A locked inbox, with the columns that sending and receiving need."""

    team_id: UUID
    id: UUID
    email_address: str
    receiving_address: str | None
    from_name: str | None
    domain_id: UUID


class AddressedInbox(NamedTuple):
    """An inbox that an address means. `indexed_up_to`: as far as this id searches know its messages
    (docs/decisions/0100); None where somebody else has its lock. `has_webhooks`: somebody may want its
    events. `senders`: whose mail its policy blocks, where it has one."""

    inbox: tuple[UUID, UUID]
    indexed_up_to: UUID | None
    has_webhooks: bool
    senders: SenderRules | None = None


async def lock(conn: Connection, keys: Sequence[tuple[UUID, UUID]]) -> list[LockedInbox]:
    """Lock these inboxes; return those that exist."""
    rows = await conn.fetch(LOCK, *map(list, zip(*keys, strict=True)))
    return [LockedInbox(**row) for row in rows]


async def lock_in_order(
    conn: Connection, addresses: Collection[str], without: Collection[UUID], brief_ms: int
) -> dict[str, AddressedInbox]:
    """Lock the inboxes at these addresses one after the other, but for those `without`; return all of them by
    address. Each lock is waited for `brief_ms`, else LockNotAvailableError is raised."""
    limits = (str(brief_ms), str(LOCK_TIMEOUT_MS))
    return _by_address(await conn.fetch(LOCK_IN_ORDER, list(addresses), list(without), *limits))


async def lock_at(
    conn: Connection, addresses: Collection[str], waited: tuple[UUID, UUID] | None
) -> dict[str, AddressedInbox]:
    """Lock the inboxes at these addresses that nobody else has locked, and wait for one of them; return all
    of them by address."""
    return _by_address(await conn.fetch(LOCK_AT, list(addresses), *(waited or (None, None))))


def _by_address(rows: Sequence[Any]) -> dict[str, AddressedInbox]:
    return {
        row["address"]: AddressedInbox(
            (row["team_id"], row["id"]), row["described_to"], row["has_webhooks"], _senders(row)
        )
        for row in rows
    }


def _senders(row: Any) -> SenderRules | None:
    allowed, blocked = row["allowed_senders"], row["blocked_senders"]
    return SenderRules(frozenset(allowed), frozenset(blocked)) if allowed or blocked else None
