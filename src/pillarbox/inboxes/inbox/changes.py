"""Making, naming and deleting inboxes (inboxes.md section 3).

Each call is part of one transaction, the one that `db` stands for. Which inbox an address means is settled by
the directory, for the whole installation. A deleted inbox is gone from the commit on, for everybody, and its
addresses are free; a job removes what it had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from msgspec import UNSET

from pillarbox.api_keys import keys
from pillarbox.directory import inboxes as directory
from pillarbox.inboxes import events, prometheus
from pillarbox.inboxes.events import InboxOfEvent, Source
from pillarbox.inboxes.inbox import addresses, queries, wire
from pillarbox.inboxes.inbox.conditions import (
    InboxRules,
    domain_of,
    refuse_foreign_name,
    refuse_not_ready,
)
from pillarbox.inboxes.inbox.queries import NewInboxRow
from pillarbox.inboxes.inbox.wire import InboxChange, NewInbox
from pillarbox.inboxes.waiting.changes import changed
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.wire.problems import Conflict, InvalidField, NotFound
from pillarbox.kernel.work import job_queries
from pillarbox.kernel.work.job_queries import NewJob
from pillarbox.teams.allowances import TooMany, hold_count
from pillarbox.webhooks.publish import Publisher


class AddressInUse(Conflict):
    def __init__(self) -> None:
        super().__init__("The email address is used by another inbox.")


@dataclass(frozen=True, slots=True)
class Inboxes:
    """The changes, and what they need."""

    ids: Ids
    publisher: Publisher
    rules: InboxRules

    async def create(self, db: TeamDb, new_inbox: NewInbox, source: Source = events.API) -> UUID:
        """Create an empty inbox; return its id."""
        address = addresses.inbox_address(new_inbox.email_address)
        name = addresses.inbox_name(new_inbox.name or "") or address.address
        shown = wire.new_from_name(new_inbox)
        from_name = None if shown is None else addresses.from_name(shown)
        forwarding = new_inbox.forwarding is True
        domain = await domain_of(db, address.domain)
        await refuse_not_ready(db, domain, self.rules, forwarding=forwarding)
        if from_name is not None:
            await refuse_foreign_name(db, from_name, self.rules)
        await self._refuse_too_many(db)
        receiving = self._receiving_address() if forwarding else None
        stamp = self.ids.stamp()
        await self._take(db, stamp.id, address.address, receiving)
        await queries.insert(
            db,
            NewInboxRow(
                id=stamp.id,
                name=name,
                email_address=address.address,
                receiving_address=receiving,
                from_name=from_name,
                domain_id=domain.id,
                created_at=stamp.at,
            ),
        )
        ref = InboxOfEvent(db.team_id, stamp.id, source)
        await self.publisher.refer(db.connection, [events.created(ref, self.ids.now())])
        _count(db, "created")
        return stamp.id

    async def change(
        self, db: TeamDb, inbox_id: UUID, change: InboxChange, source: Source = events.API
    ) -> None:
        """Change its names; nothing happens where they are so already."""
        name = None if change.name is UNSET else addresses.inbox_name(change.name)
        if name == "":
            raise InvalidField("name", "Use at least 1 character.")
        shown = wire.changed_from_name(change)
        if shown is not UNSET and shown is not None:
            await refuse_foreign_name(db, addresses.from_name(shown), self.rules)
        from_name = None if shown is UNSET else shown
        at = self.ids.now()
        if not await queries.change(db, inbox_id, name, from_name, at, sets_from_name=shown is not UNSET):
            return
        ref = InboxOfEvent(db.team_id, inbox_id, source)
        await self.publisher.refer(db.connection, [events.updated(ref, at)])
        _count(db, "changed")

    async def delete(self, db: TeamDb, inbox_id: UUID, source: Source = events.API) -> None:
        """Remove it with all that it has; 404 where it is gone already."""
        if not await self._delete(db, [inbox_id], source):
            raise NotFound("Inbox")

    async def delete_of_domain(self, db: TeamDb, domain_id: UUID) -> None:
        """Remove the inboxes of a domain that is being deleted, and is locked."""
        ids = await queries.lock_of_domain(db, domain_id)
        if ids:
            await self._delete(db, ids, events.SYSTEM)

    async def _delete(self, db: TeamDb, ids: Sequence[UUID], source: Source) -> bool:
        at = self.ids.now()
        gone = await queries.delete(db, ids)
        if not gone:
            return False
        await job_queries.add_several(
            db.connection,
            [
                NewJob(
                    team_id=db.team_id,
                    id=self.ids.new(),
                    kind=queries.JOB_REMOVE,
                    subject_id=inbox_id,
                    due_at=at,
                )
                for inbox_id in gone
            ],
        )
        await keys.end_of_inboxes(db, gone)
        await directory.remove(db, gone)
        await changed(db.connection, gone)
        told = [events.deleted(InboxOfEvent(db.team_id, inbox_id, source), at) for inbox_id in gone]
        await self.publisher.refer(db.connection, told)
        _count(db, "deleted", len(gone))
        return True

    async def _take(self, db: TeamDb, inbox_id: UUID, address: str, receiving: str | None) -> None:
        if not await directory.add(db, address, inbox_id):
            raise AddressInUse
        if receiving is not None and not await directory.add(db, receiving, inbox_id, is_forwarded=True):
            raise AddressInUse

    async def _refuse_too_many(self, db: TeamDb) -> None:
        """Raise where the team has its share of inboxes; nobody else makes one until the transaction ends."""
        await hold_count(db, "inboxes")
        if await queries.count(db) >= self.rules.most:
            raise TooMany(self.rules.most, "inboxes")

    def _receiving_address(self) -> str:
        return addresses.receiving_address(bytes.fromhex(self.ids.token()), self.rules.inbound_domain or "")


def _count(db: TeamDb, change: str, times: int = 1) -> None:
    after_commit(db.connection, partial(prometheus.CHANGES.add, times, (change,)))
