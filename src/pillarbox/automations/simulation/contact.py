"""The contact of a simulated run: as it is in the database, and from then on as the steps change it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET

from pillarbox.automations.execution import contact_queries
from pillarbox.automations.graphs.evaluation import ContactFacts
from pillarbox.contact_properties.definitions import fallbacks
from pillarbox.contacts import store
from pillarbox.contacts.change import ContactChange
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.mail.placeholders.contact_values import ContactValues


@dataclass(slots=True)
class SimulatedContact:
    """The simulated contact, as rules, values and mail see it. `is_new`: the event would create it."""

    id: UUID
    address: str
    email: str
    created_at: datetime
    is_new: bool
    first_name: str | None = None
    last_name: str | None = None
    unsubscribed: bool = False
    properties: dict[str, Any] = field(default_factory=dict)
    fallbacks: Mapping[str, Any] = field(default_factory=dict)
    is_deleted: bool = False

    def facts(self) -> ContactFacts | None:
        """Return the contact as rules see it; None where a step has deleted it."""
        if self.is_deleted:
            return None
        return ContactFacts(
            id=self.id,
            email=self.email,
            first_name=self.first_name,
            last_name=self.last_name,
            unsubscribed=self.unsubscribed,
            created_at=self.created_at,
            properties={**self.fallbacks, **self.properties},
        )

    async def values(self, _: TeamDb, addresses: Collection[str]) -> Mapping[str, ContactValues]:
        """Return the contact's values by its address, as mail asks for them; no other address is known."""
        if self.is_deleted or self.address not in addresses:
            return {}
        made = ContactValues(
            email=self.email,
            first_name=self.first_name,
            last_name=self.last_name,
            properties=self.properties,
            fallbacks=self.fallbacks,
        )
        return {self.address: made}

    def change(self, change: ContactChange) -> None:
        """Apply the change of a `contact_update` step."""
        if change.first_name is not UNSET:
            self.first_name = change.first_name or None
        if change.last_name is not UNSET:
            self.last_name = change.last_name or None
        if change.unsubscribed is not UNSET:
            self.unsubscribed = change.unsubscribed
        for key, value in change.properties.items():
            if value is None:
                self.properties.pop(key, None)
            else:
                self.properties[key] = value


async def contact_of(db: TeamDb, address: EmailAddress, new_id: UUID, now: datetime) -> SimulatedContact:
    """Return the contact that has this address, or the one that an event would make."""
    other = await fallbacks(db)
    contact_id = await store.id_of(db, address.address)
    rows = [] if contact_id is None else await contact_queries.contacts(db, [contact_id])
    if not rows:
        return SimulatedContact(
            id=new_id,
            address=address.address,
            email=address.shown,
            created_at=now,
            is_new=True,
            fallbacks=other,
        )
    [row] = rows
    return SimulatedContact(
        id=row.id,
        address=row.address,
        email=row.email,
        created_at=row.created_at,
        is_new=False,
        first_name=row.first_name,
        last_name=row.last_name,
        unsubscribed=row.unsubscribed,
        properties=msgspec.json.decode(row.properties),
        fallbacks=other,
    )
