"""`pillarbox topics`: which topics a team has."""

from __future__ import annotations

from dataclasses import asdict

import typer

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import Json, perform, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.teams.commands.choosing import TeamOption, one_team
from pillarbox.topics import overview_queries

group = typer.Typer(no_args_is_help=True, help="List the topics of a team.")


@group.callback()
def of_a_team() -> None:
    """List the topics of a team."""


@group.command("list")
def show_all(
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List the topics of a team, with how many contacts chose to get each or to leave it."""
    perform(lambda connected: listed(connected, team, json=json), data=data, database_url=database_url)


async def listed(connected: CommandDatabase, team: str | None, *, json: bool) -> int:
    """Print them, the newest first."""
    owner = await one_team(connected, team)
    found = await overview_queries.every(TeamDb(connected.pool, owner.id))
    if json:
        show_json({"object": "list", "data": [asdict(one) for one in found]})
    elif found:
        show_table(
            ("Id", "Name", "Default", "Visibility", "Joined", "Left", "Created"),
            [
                (
                    one.id,
                    one.name,
                    one.default_subscription,
                    one.visibility,
                    f"{one.joined:,}",
                    f"{one.refused:,}",
                    one.created_at,
                )
                for one in found
            ],
        )
    else:
        say(f"The team {owner.name!r} has no topics.")
    return 0
