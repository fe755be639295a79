"""Which team the operator means by a name or an id."""

from __future__ import annotations

from typing import Annotated

import typer

from pillarbox.kernel.terminal.answers import CommandRefused
from pillarbox.kernel.terminal.connect import CommandDatabase
from pillarbox.teams import bootstrap
from pillarbox.teams.team import Team

TeamOption = Annotated[
    str | None,
    typer.Option("--team", metavar="NAME_OR_ID", help="The team, by name or id.", show_default=False),
]


async def one_team(connected: CommandDatabase, name: str | None) -> Team:
    """Return the team of that name or id; without one, the only team there is."""
    teams = await bootstrap.list_teams(connected.pool)
    if name is None:
        if len(teams) != 1:
            raise CommandRefused(
                "There are several teams; name one with --team." if teams else "There is no team yet."
            )
        return teams[0]
    found = [team for team in teams if name in (str(team.id), team.name)]
    if not found:
        raise CommandRefused(f"There is no team {name!r}.")
    if len(found) > 1:
        ids = ", ".join(str(team.id) for team in found)
        raise CommandRefused(f"Several teams are named {name!r}; use an id: {ids}.")
    return found[0]


async def chosen_teams(connected: CommandDatabase, name: str | None) -> list[Team]:
    """Return the team that was named, or all of them."""
    if name is not None:
        return [await one_team(connected, name)]
    return list(await bootstrap.list_teams(connected.pool))
