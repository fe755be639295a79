"""Domain events, told in the transaction of what they tell about (webhooks.md section 7.3)."""

from __future__ import annotations

from typing import Final

import msgspec

from pillarbox.domains.installation import Installation
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.queries import Domain
from pillarbox.domains.records import Record, records_of
from pillarbox.domains.wire import status_of
from pillarbox.domains.workshop import Workshop
from pillarbox.kernel.db import TeamDb
from pillarbox.kernel.instants import iso_style
from pillarbox.webhooks.publish import Event

CREATED: Final = "domain.created"
UPDATED: Final = "domain.updated"
DELETED: Final = "domain.deleted"

EVENT_NAMES: Final = {"Receiving": "Receiving MX"}
"""Records that events call otherwise than the API does."""


async def tell(db: TeamDb, shop: Workshop, kind: str, domain: Domain) -> None:
    """Tell the team's webhooks what the domain looks like now (deleted: looked like)."""
    data = event_data(domain, shop.here, proof=await proof_needed(db, shop.here))
    await shop.publisher.publish(db.connection, [Event(db.team_id, kind, shop.ids.now(), data)])


def event_data(domain: Domain, here: Installation, *, proof: bool) -> dict[str, object]:
    """The `data` of a domain event, its keys in the order of the contract."""
    return {
        "id": str(domain.id),
        "name": domain.name,
        "status": status_of(domain, proof=proof),
        "created_at": iso_style(domain.created_at),
        "region": domain.region,
        "records": [_record(record) for record in records_of(domain, here, proof=proof)],
    }


def _record(record: Record) -> dict[str, object]:
    shown: dict[str, object] = msgspec.to_builtins(record)
    shown["record"] = EVENT_NAMES.get(record.record, record.record)
    return shown
