"""`pillarbox teams`: who may use this installation."""

from __future__ import annotations

from typing import Annotated

import typer

from pillarbox.cli.answers import Json, Refused, perform, say, show_json, show_table
from pillarbox.cli.choosing import one_team
from pillarbox.cli.connect import Data, DatabaseUrl, Reach
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.teams import bootstrap
from pillarbox.teams.bootstrap import TeamStatus
from pillarbox.teams.queries import Team
from pillarbox.teams.slugs import slug

group = typer.Typer(no_args_is_help=True, help="Make, list, block and unblock teams.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the team is called.")]
NameOrId = Annotated[str, typer.Argument(metavar="NAME_OR_ID", help="The team, by name or id.")]
Email = Annotated[str, typer.Option("--email", metavar="ADDRESS", help="Address of the team's first member.")]


@group.command("create")
def create(
    name: Name, email: Email, json: Json = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Make a team with one member and a full-access API key, which is printed once."""
    perform(lambda reach: make(reach, name, email, json=json), data=data, database_url=database_url)


@group.command("list")
def list_all(json: Json = False, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """List the teams, oldest first."""
    perform(lambda reach: show_all(reach, json=json), data=data, database_url=database_url)


@group.command("block")
def block(team: NameOrId, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Block a team: its keys are answered with 451 from the next second on; its queue goes on."""
    perform(
        lambda reach: change(reach, team, TeamStatus.ACTIVE, TeamStatus.BLOCKED),
        data=data,
        database_url=database_url,
    )


@group.command("unblock")
def unblock(team: NameOrId, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Let a blocked team work again."""
    perform(
        lambda reach: change(reach, team, TeamStatus.BLOCKED, TeamStatus.ACTIVE),
        data=data,
        database_url=database_url,
    )


async def make(reach: Reach, name: str, email: str, *, json: bool) -> int:
    try:
        made = await bootstrap.create_team(reach.pool, name=name, email=email, ids=Ids(SystemClock()))
    except ValueError as wrong:
        raise Refused(str(wrong)) from None
    if json:
        show_json({"object": "team", "id": made.id, "name": name, "email": email, "token": made.token})
        return 0
    say(f"team {made.id}")
    say(f"api key {made.token} (shown only now; keep it)")
    return 0


async def show_all(reach: Reach, *, json: bool) -> int:
    teams = await bootstrap.list_teams(reach.pool)
    if json:
        show_json({"object": "list", "data": [shape(team) for team in teams]})
        return 0
    show_table(
        ("Id", "Number", "Name", "Slug", "Email", "Status", "Requests/s", "Created"),
        [
            (
                team.id,
                team.number,
                team.name,
                slug(team.number),
                team.email,
                team.status,
                limit_of(team),
                team.created_at,
            )
            for team in teams
        ],
    )
    return 0


async def change(reach: Reach, wanted: str, before: TeamStatus, after: TeamStatus) -> int:
    """Take a team from one status to another; a team that is there already stays there."""
    team = await one_team(reach, wanted)
    if team.status not in (before.value, after.value):
        raise Refused(f"The team {team.name!r} is {team.status}; that cannot be changed this way.")
    await bootstrap.set_status(reach.pool, team.id, after)
    say(f"{team.name} is {after.value}.")
    return 0


def shape(team: Team) -> dict[str, object]:
    return {
        "id": team.id,
        "number": team.number,
        "name": team.name,
        "slug": slug(team.number),
        "email": team.email,
        "status": team.status,
        "rate_limit": team.rate_limit,
        "created_at": team.created_at,
    }


def limit_of(team: Team) -> str:
    """The team's own request limit in words."""
    if team.rate_limit is None:
        return "as set"
    return str(team.rate_limit) if team.rate_limit else "no limit"
