"""Changing a domain's settings (domains.md section 4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from msgspec import UNSET, UnsetType

from pillarbox.domains import queries
from pillarbox.domains.context import DomainContext
from pillarbox.domains.create import NoCapability, refuse_same_label
from pillarbox.domains.dns.records import needed
from pillarbox.domains.domain_events import UPDATED, publish
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.queries import Domain
from pillarbox.domains.status import RecordKey
from pillarbox.domains.wire import ChangedDomain, Switch
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import NotFound

_TRACKING = frozenset({RecordKey.TRACKING.value, RecordKey.TRACKING_CAA.value})


async def change(
    db: TeamDb, domain_id: UUID, changed_domain: ChangedDomain, context: DomainContext
) -> Domain | None:
    """Change the domain as the request asks, in the transaction of `db`. Without a difference no event is
    published, and the answer is None."""
    before = await queries.lock(db, domain_id)
    if before is None:
        raise NotFound("Domain")
    after = changed(before, changed_domain)
    if after == before:
        return None
    kept = states_kept(before, after, proof=await proof_needed(db, context.here))
    after = replace(after, states=kept)
    await queries.update(db, after)
    await publish(db, context, UPDATED, after)
    return after


def changed(domain: Domain, changed_domain: ChangedDomain) -> Domain:
    """Return the domain with the settings that were asked for; raise 422 where they contradict each other."""
    sending, receiving = domain.sending, domain.receiving
    if not isinstance(changed_domain.capabilities, UnsetType):
        sending = _switched(sending, changed_domain.capabilities.sending)
        receiving = _switched(receiving, changed_domain.capabilities.receiving)
    if not (sending or receiving):
        raise NoCapability
    tracking = domain.tracking_subdomain
    if not isinstance(changed_domain.tracking_subdomain, UnsetType):
        tracking = changed_domain.tracking_subdomain and changed_domain.tracking_subdomain.lower()
        refuse_same_label(tracking, domain.return_path)
    return replace(
        domain,
        sending=sending,
        receiving=receiving,
        tracking_subdomain=tracking,
        open_tracking=_given(changed_domain.open_tracking, domain.open_tracking),
        click_tracking=_given(changed_domain.click_tracking, domain.click_tracking),
        tls=_given(changed_domain.tls, domain.tls),
    )


def states_kept(before: Domain, after: Domain, *, proof: bool) -> dict[str, Mapping[str, Any]]:
    """Return the states of the records that stay; a record that comes, or comes back, begins anew."""
    stay = {key.value for key in needed(before, proof=proof)} & {
        key.value for key in needed(after, proof=proof)
    }
    if after.tracking_subdomain is not None:
        stay.add(RecordKey.TRACKING_CAA.value)
    if before.tracking_subdomain != after.tracking_subdomain:
        stay -= _TRACKING
    return {name: state for name, state in before.states.items() if name in stay}


def _switched(before: bool, switch: Switch | UnsetType) -> bool:
    return before if switch is UNSET else switch == "enabled"


def _given(value: Any, before: Any) -> Any:
    return before if value is UNSET else value
