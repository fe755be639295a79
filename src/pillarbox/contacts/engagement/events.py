"""Which events contacts had, for whoever distributes them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from pillarbox.contacts.engagement import queries
from pillarbox.kernel.postgres.database import TeamDb


class ContactEvent(NamedTuple):
    """An event of the contact that has this address as it is compared."""

    address: str
    name: str
    at: datetime


async def note(db: TeamDb, events: Sequence[ContactEvent]) -> None:
    """Note that the contacts with these addresses, those that there are, had these events."""
    if events:
        addresses, names, times = zip(*events, strict=True)
        await queries.add_events(db, addresses, names, times)
