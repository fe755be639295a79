"""Which team the operator means by a name or an id."""

from __future__ import annotations

from typing import Annotated

import typer

from pillarbox.kernel.terminal.answers import Refused
from pillarbox.kernel.terminal.connect import Connected
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
