"""Contacts as other parts change them, each function inside the caller's transaction (contacts.md 0.7).

All that belongs to a contact is written while its row is locked, and its events are published in the same
transaction: `contact.created` or `contact.updated` once for each call that made a difference, and
`contact.topics.updated` with the topics whose subscription is another now. The row of a contact is locked
after definitions of properties and segments; who changes several contacts in one transaction goes through
their addresses in sorted order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from pillarbox.contact_properties.definitions import values_of
from pillarbox.contacts import event_data, queries, segment_queries, topic_queries
from pillarbox.contacts.change import NOWHERE, ContactChange, ContactMemberships, Subscription
from pillarbox.contacts.engagement import queries as engagement_queries
from pillarbox.contacts.name_search import queries as name_queries
from pillarbox.contacts.prometheus import CHANGES
from pillarbox.contacts.queries import ContactRow, StoredContact
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.wire.email_address import EmailAddress, identifier
from pillarbox.kernel.wire.problems import Invalid, NotFound
from pillarbox.suppressions.erased_addresses import ErasedAddresses
from pillarbox.webhooks.publish import Publisher, WebhookEvent


async def id_of(db: TeamDb, address: str) -> UUID | None:
    """Return the id of the contact with this compared address; None where there is none."""
    return await queries.id_of(db, address)


async def find(db: TeamDb, text: str) -> UUID:
    """Return the contact that a path names, by its address or id; 404 where there is none."""
    named = identifier(text)
    if isinstance(named, UUID):
        found = named if await queries.exists(db, named) else None
    else:
        found = None if named is None else await queries.id_of(db, named)
    if found is None:
        raise NotFound("Contact")
    return found


class MembersByConditions(Invalid):
    """A segment whose conditions say who is in it: nobody is added or taken out by hand."""

    def __init__(self) -> None:
        super().__init__("The members of this segment follow from its conditions.")


@dataclass(frozen=True, slots=True)
class ContactEnds:
    """The hook for whatever else ends with a contact; a higher slice provides it. It is called in the
    transaction that deletes the contact, whose row is locked."""

    end: Callable[[TeamDb, UUID], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Contacts:
    """Changes contacts and publishes what happened."""

    ids: Ids
    publisher: Publisher
    ends: ContactEnds | None = None
    erased: ErasedAddresses | None = None

    async def upsert(
        self,
        db: TeamDb,
        address: EmailAddress,
        change: ContactChange,
        belonging: ContactMemberships = NOWHERE,
    ) -> StoredContact:
        """Make the contact of an address, or change of the one that has it what is given.

        It is added to segments and never taken from one. 422 for a property that is not defined and for an
        address whose person was erased, 404 for a
        segment or a topic that does not exist. `has_changed` says whether a member or a segment is another
        than before.
        """
        if self.erased is not None:
            await self.erased.refuse(db, address.address)
        values = await values_of(db, change.properties)
        await self._hold_segments(db, belonging.segments)
        await self._refuse_unknown_topics(db, belonging.topics)
        stamp = self.ids.stamp()
        stored = await queries.upsert(db, stamp.id, address, change, values, stamp.at)
        added = await self._add(db, stored.id, belonging.segments)
        if added and not stored.has_changed:
            await queries.touch(db, stored.id, self.ids.now())
            stored = stored._replace(has_changed=True)
        if not stored.has_changed and not belonging.topics:
            return stored
        contact = await self._locked(db, stored.id)
        if stored.has_changed:
            kind = event_data.CREATED if stored.is_new else event_data.UPDATED
            await self._publish(db, kind, contact, is_in_none=stored.is_new and not belonging.segments)
        if belonging.topics:
            await self._choose(db, contact, belonging.topics)
        return stored

    async def change(self, db: TeamDb, contact_id: UUID, change: ContactChange) -> bool:
        """Change what is given; False where that made no difference. 404 for a contact that is gone."""
        values = await values_of(db, change.properties)
        if not await queries.change(db, contact_id, change, values, self.ids.now()):
            if not await queries.exists(db, contact_id):
                raise NotFound("Contact")
            return False
        await self._publish(db, event_data.UPDATED, await self._locked(db, contact_id))
        return True

    async def set_unsubscribed(self, db: TeamDb, contact_id: UUID, *, unsubscribed: bool) -> bool:
        """Unsubscribe the contact from everything, or take that back; choices of topics stay. False where it
        was so already."""
        return await self.change(db, contact_id, ContactChange(unsubscribed=unsubscribed))

    async def choose_topics(
        self, db: TeamDb, contact_id: UUID, choices: Mapping[UUID, Subscription]
    ) -> dict[UUID, Subscription]:
        """Write down what the contact chose; returns the topics whose subscription is another now.

        404, and nothing is written, for a topic that the team has not, and for a contact that is gone."""
        return await self._choose(db, await self._locked(db, contact_id), choices)

    async def _choose(
        self, db: TeamDb, contact: ContactRow, choices: Mapping[UUID, Subscription]
    ) -> dict[UUID, Subscription]:
        """Choose topics for a contact that is locked; return the choices that differ."""
        before = await topic_queries.choose(db, contact.id, choices, self.ids.now())
        if len(before) < len(choices):
            raise NotFound("Topic")
        changed = {topic: word for topic, word in choices.items() if before[topic] != word}
        if changed:
            data = event_data.topics_data(contact.email, changed)
            await self._tell(db, event_data.TOPICS, data)
        return changed

    async def add_to_segments(self, db: TeamDb, contact_id: UUID, segment_ids: Sequence[UUID]) -> bool:
        """Make the contact a member; False where it was one of all of them. 404 for a contact or a segment
        that does not exist."""
        await self._hold_segments(db, segment_ids)
        await self._locked(db, contact_id)
        return await self._moved(db, contact_id, await self._add(db, contact_id, segment_ids) > 0)

    async def remove_from_segment(self, db: TeamDb, contact_id: UUID, segment_id: UUID) -> bool:
        """End a membership; False where there was none. 404 for a contact that does not exist; the segment is
        the caller's to look for."""
        if await segment_queries.conditions_of(db, segment_id) is not None:
            raise MembersByConditions
        await self._locked(db, contact_id)
        return await self._moved(db, contact_id, await segment_queries.remove(db, contact_id, segment_id))

    async def delete(self, db: TeamDb, contact_id: UUID) -> None:
        """Delete the contact with its memberships, choices and values; 404 where it is gone."""
        contact = await queries.lock_alone(db, contact_id)
        if contact is None:
            raise NotFound("Contact")
        if self.ends is not None:
            await self.ends.end(db, contact_id)
        await self._publish(db, event_data.DELETED, contact)
        await segment_queries.remove_all(db, contact_id)
        await topic_queries.remove_all(db, contact_id)
        await engagement_queries.remove(db, contact_id)
        await name_queries.remove(db, contact_id)
        await queries.delete(db, contact_id)

    async def _locked(self, db: TeamDb, contact_id: UUID) -> ContactRow:
        contact = await queries.lock(db, contact_id)
        if contact is None:
            raise NotFound("Contact")
        return contact

    async def _hold_segments(self, db: TeamDb, segment_ids: Sequence[UUID]) -> None:
        if not segment_ids:
            return
        held = await segment_queries.hold(db, segment_ids)
        if {one.id for one in held} != set(segment_ids):
            raise NotFound("Segment")
        if any(one.has_conditions for one in held):
            raise MembersByConditions

    async def _refuse_unknown_topics(self, db: TeamDb, topics: Mapping[UUID, Subscription]) -> None:
        if topics and await topic_queries.live(db, list(topics)) != topics.keys():
            raise NotFound("Topic")

    async def _add(self, db: TeamDb, contact_id: UUID, segment_ids: Sequence[UUID]) -> int:
        if not segment_ids:
            return 0
        return await segment_queries.add(db, contact_id, segment_ids, self.ids.now())

    async def _moved(self, db: TeamDb, contact_id: UUID, has_changed: bool) -> bool:
        if has_changed:
            await queries.touch(db, contact_id, self.ids.now())
            await self._publish(db, event_data.UPDATED, await self._locked(db, contact_id))
        return has_changed

    async def _publish(self, db: TeamDb, kind: str, contact: ContactRow, *, is_in_none: bool = False) -> None:
        """Publish an event of the contact; `is_in_none`: it is known to be in no segment."""
        segment_ids = [] if is_in_none else await segment_queries.ids(db, contact.id)
        await self._tell(db, kind, event_data.contact_data(db.team_id, contact, segment_ids))

    async def _tell(self, db: TeamDb, kind: str, data: object) -> None:
        await self.publisher.publish(db.connection, [WebhookEvent(db.team_id, kind, self.ids.now(), data)])
        after_commit(db.connection, partial(CHANGES.add, 1, (kind,)))
