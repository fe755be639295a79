"""The operator trusts a domain without DNS (contract decision 21; docs/decisions/0015)."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import msgspec

from pillarbox.directory import domains as directory
from pillarbox.domains import queries
from pillarbox.domains.checks.start import ClaimFirst, shown
from pillarbox.domains.context import DomainContext
from pillarbox.domains.create import OwnedElsewhere, create, registrable_name
from pillarbox.domains.dns.records import needed
from pillarbox.domains.domain_events import UPDATED, publish
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.queries import Domain
from pillarbox.domains.status import DomainState, RecordKey
from pillarbox.domains.wire import NewDomain
from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.wire.problems import Invalid, NotFound
from pillarbox.people.audit import Act, record_command

# Links rewritten to a host that does not answer would break mail, so it is said apart that it does.
_OF_TRACKING = frozenset({RecordKey.TRACKING, RecordKey.TRACKING_CAA})


class NoTrackingHost(Invalid):
    def __init__(self) -> None:
        super().__init__("The domain has no `tracking_subdomain`. Set it with `PATCH /domains/{domain_id}`.")


async def trust(
    source: Source, name: str, team_id: UUID, context: DomainContext, *, tracking: bool = False
) -> Domain:
    """Let the team send and receive as `name` from the commit on; the domain is added where it is missing.
    With `tracking` the host of its tracked links is trusted as well; raises NoTrackingHost where it has none.

    Raises the same problems as adding a domain, and ClaimFirst for the placeholder of an open claim. `source`
    must not be inside a transaction.
    """
    db = TeamDb(source, team_id)
    name = registrable_name(name, context.here)
    domain_id = await queries.id_of(db, name)
    if domain_id is None:
        domain_id = (await create(db, NewDomain(name=name), context)).id
    async with db.transaction() as inner:
        await directory.hold_name(inner, name)
        domain = await queries.lock(inner, domain_id)
        if domain is None:
            raise NotFound("Domain")
        if domain.claim_id is not None:
            raise ClaimFirst
        if tracking and domain.tracking_subdomain is None:
            raise NoTrackingHost
        return await _trusted(inner, domain, context, tracking=tracking)


async def _trusted(db: TeamDb, before: Domain, context: DomainContext, *, tracking: bool) -> Domain:
    after = replace(before, states=trusted_states(before, tracking=tracking))
    await queries.trust(db, after.id, msgspec.json.encode(after.states).decode(), tracking=tracking)
    if not await directory.take_ownership(db, after.name, context.ids.now()):
        raise OwnedElsewhere(after.name)
    proof = await proof_needed(db, context.here)
    if shown(before, proof=proof) != shown(after, proof=proof):
        await publish(db, context, UPDATED, after)
    await record_command(db, Act.DOMAIN_TRUSTED, after.name, {"id": after.id})
    return after


def trusted_states(domain: Domain, *, tracking: bool = False) -> dict[str, dict[str, str]]:
    """Return every record that the domain needs as verified, so its status follows by the usual rule."""
    states = {name: dict(state) for name, state in domain.states.items()}
    for record in needed(domain, proof=True):
        if tracking or record not in _OF_TRACKING:
            states[record.value] = {"status": DomainState.VERIFIED.value}
    return states
