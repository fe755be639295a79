"""The global index of addresses of inboxes: each address means at most one live inbox of the installation.

An address is in the form in which addresses are compared: all of it in lower case, the domain in A-labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb


class InboxAt(NamedTuple):
    """The inbox that an address means. `is_forwarded`: it is the receiving address, not the inbox's own."""

    team_id: UUID
    inbox_id: UUID
    is_forwarded: bool


async def add(db: TeamDb, address: str, inbox_id: UUID, *, is_forwarded: bool = False) -> bool:
    """Make the address mean this inbox; False when it already means one, of whichever team."""
    added = await db.run(
        """
        INSERT INTO directory_inboxes (address, team_id, inbox_id, is_forwarded) VALUES ($2, $1, $3, $4)
        ON CONFLICT (address) DO NOTHING
        """,
        address,
        inbox_id,
        is_forwarded,
    )
    return added == 1


async def remove(db: TeamDb, inbox_ids: Sequence[UUID]) -> None:
    """Free the addresses of these inboxes."""
    await db.run(
        "DELETE FROM directory_inboxes WHERE team_id = $1 AND inbox_id = ANY ($2::uuid[])", inbox_ids
    )


async def id_of(db: TeamDb, address: str) -> UUID | None:
    """Return the team's inbox whose own address this is."""
    found: UUID | None = await db.value(
        "SELECT inbox_id FROM directory_inboxes WHERE address = $2 AND team_id = $1 AND NOT is_forwarded",
        address,
    )
    return found


async def at(source: Source, addresses: Sequence[str]) -> dict[str, InboxAt]:
    """Return the inboxes that these addresses mean, of whichever team; those that mean none are left out."""
    rows = await source.fetch(
        """
        SELECT address, team_id, inbox_id, is_forwarded
          FROM directory_inboxes
         WHERE address = ANY ($1::text[])
        """,
        addresses,
    )
    return {row["address"]: InboxAt(row["team_id"], row["inbox_id"], row["is_forwarded"]) for row in rows}
