"""The lock of an inbox: whoever changes its threads, messages, drafts or counts takes it first
(docs/decisions/0091).

What is read by later statements of the same transaction is what the holder before has committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection

InboxKey = tuple[UUID, UUID]
"""Team and inbox."""

# Of several teams; each row names its own.
LOCK = """
    SELECT i.team_id, i.id, i.email_address, i.receiving_address
      FROM inboxes i
      JOIN unnest($1::uuid[], $2::uuid[]) AS k (team_id, id) ON k.team_id = i.team_id AND k.id = i.id
     ORDER BY i.team_id, i.id
       FOR NO KEY UPDATE OF i
"""


class LockedInbox(NamedTuple):
    """An inbox whose lock is held until the transaction ends."""

    team_id: UUID
    id: UUID
    email_address: str
    receiving_address: str | None


async def lock(conn: Connection, keys: Iterable[InboxKey]) -> dict[InboxKey, LockedInbox]:
    """Lock these inboxes; those that do not exist (any more) are left out."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    rows = await conn.fetch(LOCK, [team for team, _ in wanted], [inbox for _, inbox in wanted])
    return {(row["team_id"], row["id"]): LockedInbox(**row) for row in rows}
