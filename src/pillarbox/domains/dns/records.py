"""The DNS records of a domain as `records` shows them (domains.md section 2)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType

from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.names import relative
from pillarbox.domains.queries import Domain
from pillarbox.domains.status import RECORD_STATES, RecordKey, state_of
from pillarbox.kernel.http.schemas import one_of

MX_PRIORITY = 10

RecordStatus = Annotated[str, one_of(RECORD_STATES)]


class Record(Struct):
    """One record to publish; the keys stand in the order of the contract."""

    record: Literal["SPF", "DKIM", "Receiving", "Tracking", "TrackingCAA"]
    name: str
    type: Literal["MX", "TXT", "CNAME", "CAA"]
    ttl: Literal["Auto"]
    status: RecordStatus
    value: str
    priority: int | UnsetType = UNSET


def records_of(domain: Domain, here: MailInstallation, *, proof: bool) -> list[Record]:
    """Return the records that the domain needs now, in the contract's order; of a placeholder none
    are shown."""
    if domain.claim_id is not None:
        return []
    return [_record(key, domain, here) for key in needed(domain, proof=proof)]


def needed(domain: Domain, *, proof: bool) -> list[RecordKey]:
    """Return which records the domain's options ask for."""
    keys: list[RecordKey] = []
    if domain.sending:
        keys += [RecordKey.SPF_MX, RecordKey.SPF_TXT, RecordKey.DKIM]
    elif domain.receiving and proof:
        keys.append(RecordKey.DKIM)
    if domain.receiving:
        keys.append(RecordKey.RECEIVING)
    if domain.tracking_subdomain:
        keys.append(RecordKey.TRACKING)
    return keys


def _record(key: RecordKey, domain: Domain, here: MailInstallation) -> Record:
    state = state_of(key, domain.states).value
    if key is RecordKey.SPF_MX:
        owner = relative(domain.return_path, domain.name)
        return Record(
            record="SPF",
            name=owner,
            type="MX",
            ttl="Auto",
            status=state,
            value=here.hostname,
            priority=MX_PRIORITY,
        )
    if key is RecordKey.SPF_TXT:
        owner = relative(domain.return_path, domain.name)
        return Record(record="SPF", name=owner, type="TXT", ttl="Auto", status=state, value=f'"{here.spf}"')
    if key is RecordKey.DKIM:
        owner = relative(f"{domain.selector}._domainkey", domain.name)
        return Record(
            record="DKIM", name=owner, type="TXT", ttl="Auto", status=state, value=f"p={domain.public_key}"
        )
    if key is RecordKey.RECEIVING:
        return Record(
            record="Receiving",
            name=domain.name,
            type="MX",
            ttl="Auto",
            status=state,
            value=here.hostname,
            priority=MX_PRIORITY,
        )
    owner = relative(domain.tracking_subdomain or "", domain.name)
    return Record(
        record="Tracking", name=owner, type="CNAME", ttl="Auto", status=state, value=here.tracking_host
    )
