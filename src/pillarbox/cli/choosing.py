"""Which team or domain the operator means by a name or an id."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from pillarbox.cli.answers import Refused
from pillarbox.cli.connect import Connected
from pillarbox.domains import overview
from pillarbox.domains.names import NotADomain, normalised
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.teams import bootstrap
from pillarbox.teams.queries import Team

TeamOption = Annotated[
    str | None,
    typer.Option("--team", metavar="NAME_OR_ID", help="The team, by name or id.", show_default=False),
]


async def one_team(connected: Connected, wanted: str | None) -> Team:
    """The team of that name or id; without one, the only team there is."""
    teams = await bootstrap.list_teams(connected.pool)
    if wanted is None:
        if len(teams) != 1:
            raise Refused(
                "There are several teams; name one with --team." if teams else "There is no team yet."
            )
        return teams[0]
    found = [team for team in teams if wanted in (str(team.id), team.name)]
    if not found:
        raise Refused(f"There is no team {wanted!r}.")
    if len(found) > 1:
        ids = ", ".join(str(team.id) for team in found)
        raise Refused(f"Several teams are named {wanted!r}; use an id: {ids}.")
    return found[0]


async def chosen_teams(connected: Connected, wanted: str | None) -> list[Team]:
    """The team that was named, or all of them."""
    if wanted is not None:
        return [await one_team(connected, wanted)]
    return list(await bootstrap.list_teams(connected.pool))


async def one_domain(db: TeamDb, wanted: str) -> UUID:
    """The id of the team's domain of that name or id."""
    domains = await overview.listed(db)
    found = next((domain.id for domain in domains if str(domain.id) == wanted), None)
    if found is None:
        name = domain_name(wanted)
        found = next((domain.id for domain in domains if domain.name == name), None)
    if found is not None:
        return found
    raise Refused(f"The team has no domain {wanted!r}; `pillarbox domains list` shows those it has.")


def domain_name(text: str) -> str:
    """The normal form of a domain name."""
    try:
        return normalised(text)
    except NotADomain as wrong:
        raise Refused(f"{text!r} is not a domain: {wrong}") from None
