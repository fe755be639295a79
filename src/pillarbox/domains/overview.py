"""A team's domains as the operator sees them."""

from __future__ import annotations

from uuid import UUID

from pillarbox.domains import queries
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.queries import OverviewRow
from pillarbox.domains.status import domain_state
from pillarbox.kernel.postgres.database import TeamDb


async def listed(db: TeamDb) -> list[OverviewRow]:
    """Return the team's domains by name."""
    return await queries.overview(db)


async def statuses(db: TeamDb, domains: list[OverviewRow], here: MailInstallation) -> list[str]:
    """Return the status of each domain, as the API shows it."""
    proof = await proof_needed(db, here)
    return [
        domain_state(
            sending=domain.sending, receiving=domain.receiving, proof=proof, states=domain.states
        ).value
        for domain in domains
    ]


async def digest_of_domains(db: TeamDb, domain_id: UUID | None) -> str:
    """Return a text that is another one after a check or a change of this domain, or of one of the newest
    hundred."""
    return await queries.digest(db, domain_id)
