"""The data of webhook events about contacts (contacts.md 6, webhooks.md 7.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID, uuid5

from msgspec import Struct

from pillarbox.contacts.change import Subscription
from pillarbox.contacts.queries import ContactRow
from pillarbox.kernel.wire.instants import IsoTime, iso_style

CREATED: Final = "contact.created"
UPDATED: Final = "contact.updated"
DELETED: Final = "contact.deleted"
TOPICS: Final = "contact.topics.updated"

AUDIENCES: Final = UUID("5f3a7c52-64a1-4d0e-9d3e-0f6d9d7c3f11")
"""The name space of the audiences of teams."""


class ContactData(Struct, kw_only=True):
    """The data of an event about a contact. `audience_id` is the same for all contacts of a team, and no
    segment's."""

    id: UUID
    audience_id: UUID
    segment_ids: list[UUID]
    created_at: IsoTime
    updated_at: IsoTime
    email: str
    first_name: str | None
    last_name: str | None
    unsubscribed: bool


class ChosenTopic(Struct):
    id: UUID
    subscription: Subscription


class TopicsData(Struct, kw_only=True):
    """The topics whose subscription is another now."""

    email: str
    topics: list[ChosenTopic]


SHAPES: Final[Mapping[str, type]] = {
    CREATED: ContactData,
    UPDATED: ContactData,
    DELETED: ContactData,
    TOPICS: TopicsData,
}


def audience_of(team_id: UUID) -> UUID:
    """Return the audience of a team: one for all of its contacts."""
    return uuid5(AUDIENCES, str(team_id))


def contact_data(team_id: UUID, contact: ContactRow, segment_ids: Sequence[UUID]) -> ContactData:
    return ContactData(
        id=contact.id,
        audience_id=audience_of(team_id),
        segment_ids=list(segment_ids),
        created_at=iso_style(contact.created_at),
        updated_at=iso_style(contact.updated_at),
        email=contact.email,
        first_name=contact.first_name,
        last_name=contact.last_name,
        unsubscribed=contact.unsubscribed,
    )


def topics_data(email: str, changed: Mapping[UUID, Subscription]) -> TopicsData:
    return TopicsData(email=email, topics=[ChosenTopic(topic_id, word) for topic_id, word in changed.items()])
