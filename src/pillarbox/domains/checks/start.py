"""Asking for a check of a domain (domains.md section 4.6). `outcome.py` has what a check comes to."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.domains import queries
from pillarbox.domains.checks import check_queries
from pillarbox.domains.checks.transitions import begun
from pillarbox.domains.context import DomainContext
from pillarbox.domains.dns.records import needed
from pillarbox.domains.domain_events import UPDATED, publish
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.queries import Domain
from pillarbox.domains.wire import status_of
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Invalid, NotFound
from pillarbox.kernel.work import job_queries

JOB: Final = "domain.check"


class ClaimFirst(Invalid):
    def __init__(self) -> None:
        super().__init__("This domain is being claimed; complete the claim before you verify it.")


async def begin(db: TeamDb, domain_id: UUID, context: DomainContext) -> None:
    """Request a check, in the transaction that `db` stands for: every record is `pending`, the clock of 72
    hours starts anew, and the domain's one check is due at once.

    404 for an unknown domain, 422 for a placeholder of an open claim.
    """
    domain = await queries.lock(db, domain_id)
    if domain is None:
        raise NotFound("Domain")
    if domain.claim_id is not None:
        raise ClaimFirst
    now = context.ids.now()
    proof = await proof_needed(db, context.here)
    after = replace(domain, states=begun(domain.states, needed(domain, proof=proof), now))
    await check_queries.begin(db, domain.id, after.states, now)
    await schedule_check(db, domain.id, context, now)
    if shown(domain, proof=proof) != shown(after, proof=proof):
        await publish(db, context, UPDATED, after)


async def schedule_check(db: TeamDb, domain_id: UUID, context: DomainContext, now: datetime) -> None:
    """Make the domain's one check due; the states stay as they are."""
    await job_queries.restart(db, context.ids.new(), JOB, domain_id, now, now)


def shown(domain: Domain, *, proof: bool) -> tuple[str, ...]:
    """Return the values by which the API shows the check: the domain's status and those of its records, each
    with the name and value that it asks for (a new key changes both)."""
    records = [
        (key.value, domain.states.get(key.value, {}).get("status")) for key in needed(domain, proof=proof)
    ]
    return (status_of(domain, proof=proof), domain.selector, *map(str, records))
