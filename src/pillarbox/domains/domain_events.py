"""Domain events, published in the transaction of the change (webhooks.md section 7.3)."""

from __future__ import annotations

from typing import Any, Final, Literal
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType

from pillarbox.domains.context import DomainContext
from pillarbox.domains.dns.records import Record, RecordStatus, records_of
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.queries import Domain
from pillarbox.domains.wire import DomainStatus, status_of
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.webhooks.publish import WebhookEvent

CREATED: Final = "domain.created"
UPDATED: Final = "domain.updated"
DELETED: Final = "domain.deleted"


class EventRecord(Struct, kw_only=True):
    """As the API shows it, but for one name."""

    record: Literal["SPF", "DKIM", "Receiving MX", "Tracking", "TrackingCAA"]
    name: str
    type: Literal["MX", "TXT", "CNAME", "CAA"]
    ttl: Literal["Auto"]
    status: RecordStatus
    value: str
    priority: int | UnsetType = UNSET


class DomainData(Struct, kw_only=True):
    """The data of a domain event."""

    id: UUID
    name: str
    status: DomainStatus
    created_at: IsoTime
    region: str
    records: list[EventRecord]


SHAPES: Final = dict.fromkeys((CREATED, UPDATED, DELETED), DomainData)
"""The type of the data, by the kind of event."""


async def publish(db: TeamDb, context: DomainContext, kind: str, domain: Domain) -> None:
    """Publish an event with the domain as it is now (for `domain.deleted`: as it was)."""
    data = event_data(domain, context.here, proof=await proof_needed(db, context.here))
    await context.publisher.publish(db.connection, [WebhookEvent(db.team_id, kind, context.ids.now(), data)])


def event_data(domain: Domain, here: MailInstallation, *, proof: bool) -> DomainData:
    """Return the `data` of a domain event, its keys in the order of the contract."""
    return DomainData(
        id=domain.id,
        name=domain.name,
        status=status_of(domain, proof=proof),
        created_at=iso_style(domain.created_at),
        region=domain.region,
        records=[_record(record) for record in records_of(domain, here, proof=proof)],
    )


def _record(record: Record) -> EventRecord:
    name: Any = "Receiving MX" if record.record == "Receiving" else record.record
    return EventRecord(
        record=name,
        name=record.name,
        type=record.type,
        ttl=record.ttl,
        status=record.status,
        value=record.value,
        priority=record.priority,
    )
