"""Which domain the operator means by a name or an id."""

from __future__ import annotations

from uuid import UUID

from pillarbox.domains import overview
from pillarbox.domains.names import NotADomain, normalised
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused


async def one_domain(db: TeamDb, domain_name_value: str) -> UUID:
    """Return the id of the team's domain of that name or id."""
    domains = await overview.listed(db)
    found = next((domain.id for domain in domains if str(domain.id) == domain_name_value), None)
    if found is None:
        name = domain_name(domain_name_value)
        found = next((domain.id for domain in domains if domain.name == name), None)
    if found is not None:
        return found
    raise CommandRefused(
        f"The team has no domain {domain_name_value!r}; `pillarbox domains list` shows those it has."
    )


def domain_name(text: str) -> str:
    """Return the normal form of a domain name."""
    try:
        return normalised(text)
    except NotADomain as wrong:
        raise CommandRefused(f"{text!r} is not a domain: {wrong}") from None
