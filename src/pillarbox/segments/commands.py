"""`pillarbox segments`: which segments a team has."""

from __future__ import annotations

from dataclasses import asdict

import typer

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import Json, perform, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.segments import overview_queries
from pillarbox.segments.overview_queries import SegmentOverview
from pillarbox.teams.commands.choosing import TeamOption, one_team

group = typer.Typer(no_args_is_help=True, help="List the segments of a team.")


@group.callback()
def of_a_team() -> None:
    """List the segments of a team."""


@group.command("list")
def show_all(
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List the segments of a team, with how many members each has."""
    perform(lambda connected: listed(connected, team, json=json), data=data, database_url=database_url)


async def listed(connected: CommandDatabase, team: str | None, *, json: bool) -> int:
    """Print them, the newest first."""
    owner = await one_team(connected, team)
    found = await overview_queries.every(TeamDb(connected.pool, owner.id))
    if json:
        show_json({"object": "list", "data": [asdict(one) for one in found]})
    elif found:
        show_table(
            ("Id", "Name", "Members", "Created"),
            [(one.id, one.name, _members(one), one.created_at) for one in found],
        )
    else:
        say(f"The team {owner.name!r} has no segments.")
    return 0


def _members(segment: SegmentOverview) -> str:
    return "by conditions" if segment.members is None else f"{segment.members:,}"
