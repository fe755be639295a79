"""The one way by which copies of a broadcast are stored (architecture 2.8).

The caller's transaction has locked the rows of the recipients, so each copy is made once. Their work is
leased to this process, whose engine gets it after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from pillarbox.delivery.items import Item, LoadedEmail, OpenRecipient, queue_of_copies
from pillarbox.delivery.lease_expiry import LEASE
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.emails.broadcast_copies import making_queries, personal
from pillarbox.emails.broadcast_copies.loading import CopyLoader, CopyRow, SharedBy
from pillarbox.emails.broadcast_copies.personal import NeededValues
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.combined_statement import Statement, combined
from pillarbox.kernel.postgres.database import Connection
from pillarbox.mail.message.address import Mailbox
from pillarbox.mail.placeholders.contact_values import ContactValues
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import EventKind, FirstEntry


class NewCopy(NamedTuple):
    """A contact that gets a copy. `origin` is set where its address is suppressed: its copy ends with
    that."""

    contact_id: UUID
    address: str
    mailbox: Mailbox
    values: ContactValues
    origin: str | None


class MakingCopies:
    """Stores copies. `owner` is this process, whose engine gets them."""

    def __init__(
        self,
        *,
        clock: Clock,
        ids: Ids,
        timeline: Timeline,
        loader: CopyLoader,
        claims: ItemClaims,
        owner: UUID,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._timeline = timeline
        self._loader = loader
        self._claims = claims
        self._owner = owner

    async def needed(self, conn: Connection, shared: SharedBy) -> NeededValues:
        """Return the values of contacts that the content's placeholders need."""
        return NeededValues(await self._loader.parts(conn, shared.team_id, shared.content_id))

    async def store(
        self,
        conn: Connection,
        shared: SharedBy,
        new: Sequence[NewCopy],
        note: Callable[[Mapping[UUID, UUID]], Statement],
    ) -> list[Item]:
        """Store these copies with the statement that `note` makes of the emails of the contacts, and return
        their
        items, for the time after the commit."""
        deadline = self._claims.deadline()
        parts = await self._loader.parts(conn, shared.team_id, shared.content_id)
        needed = NeededValues(parts)
        rows = [self._row(one, needed) for one in new]
        emails = await self._loader.load(shared, parts, rows)
        noted = note({one.contact_id: row.id for one, row in zip(new, rows, strict=True)})
        if rows:
            opened = self._timeline.opened(_openings(shared, rows))
            await combined(conn, [noted, *opened.writes], self._stored(shared, rows))
        else:
            await combined(conn, (), noted)
        return [
            _item(shared, email, row, one.origin, deadline)
            for email, row, one in zip(emails, rows, new, strict=True)
        ]

    def _row(self, new_copy: NewCopy, needed: NeededValues) -> CopyRow:
        stamp = self._ids.stamp()
        return CopyRow(
            id=stamp.id,
            created_at=stamp.at,
            address=new_copy.address,
            mailbox=new_copy.mailbox,
            personal=needed.of(new_copy.contact_id, new_copy.values),
        )

    def _stored(self, shared: SharedBy, rows: Sequence[CopyRow]) -> Statement:
        now = self._clock.now()
        made = [
            {
                "id": row.id,
                "created_at": row.created_at,
                "address": row.address,
                "mailbox": row.mailbox.addr_spec,
                "destination": queue_of_copies(row.mailbox.domain),
                "personal": personal.encode(row.personal).decode(),
            }
            for row in rows
        ]
        return making_queries.stored(made, shared, now, self._owner, now + LEASE)


def _openings(shared: SharedBy, rows: Sequence[CopyRow]) -> list[FirstEntry]:
    return [
        FirstEntry(
            team_id=shared.team_id,
            email_id=row.id,
            kind=EventKind.QUEUED,
            at=row.created_at,
            recipients=1,
            domain_id=shared.domain_id,
            domain_name=shared.domain_name,
            broadcast_id=shared.broadcast_id,
        )
        for row in rows
    ]


def _item(shared: SharedBy, email: LoadedEmail, row: CopyRow, origin: str | None, deadline: float) -> Item:
    return Item(
        shared.team_id,
        row.id,
        0,
        row.mailbox.domain,
        attempt=1,
        tries=0,
        reached=False,
        uncertain=False,
        first_attempt_at=row.created_at,
        targets=[OpenRecipient(0, row.mailbox.addr_spec, row.address, origin)],
        email=email,
        deadline=deadline,
        alone=True,
    )
