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
        """As rules see it; None where a step has deleted it."""
        if self.is_deleted:
            return None
        return ContactFacts(
            self.id,
            self.email,
            self.first_name,
            self.last_name,
            self.unsubscribed,
            self.created_at,
            {**self.fallbacks, **self.properties},
        )

    async def values(self, _: TeamDb, addresses: Collection[str]) -> Mapping[str, ContactValues]:
        """As mail sees it, where it is asked for; nobody else is known."""
        if self.is_deleted or self.address not in addresses:
            return {}
        made = ContactValues(self.email, self.first_name, self.last_name, self.properties, self.fallbacks)
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
    """The contact that has this address, or the one that an event would make."""
    other = await fallbacks(db)
    contact_id = await store.id_of(db, address.address)
    rows = [] if contact_id is None else await contact_queries.contacts(db, [contact_id])
    if not rows:
        return SimulatedContact(new_id, address.address, address.shown, now, True, fallbacks=other)
    [row] = rows
    return SimulatedContact(
        row.id,
        row.address,
        row.email,
        row.created_at,
        False,
        row.first_name,
        row.last_name,
        row.unsubscribed,
        msgspec.json.decode(row.properties),
        other,
    )
