"""`pillarbox teams`: who may use this installation. `usage` adds `show`, with what a team has used."""

from __future__ import annotations

from typing import Annotated

import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, Json, perform, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.people.audit import OPERATOR, Act, record_command
from pillarbox.teams import bootstrap, operator_acts
from pillarbox.teams.bootstrap import TeamStatus
from pillarbox.teams.commands.choosing import one_team
from pillarbox.teams.commands.limits import NameOrId, set_limits, shape
from pillarbox.teams.slugs import slug
from pillarbox.teams.team import Team

group = typer.Typer(no_args_is_help=True, help="Make, list and show teams, set their limits, block them.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the team is called.")]
Email = Annotated[str, typer.Option("--email", metavar="ADDRESS", help="Address of the team's first member.")]


RateLimit = Annotated[
    str | None, typer.Option(metavar="N", help="Requests a second; 0: no limit; 'default': as all teams.")
]
DailyQuota = Annotated[
    str | None, typer.Option(metavar="N", help="Recipients and received emails a UTC day; 'none': no quota.")
]
MonthlyQuota = Annotated[
    str | None, typer.Option(metavar="N", help="The same for a calendar month; 'none': no quota.")
]
EmailDays = Annotated[
    str | None,
    typer.Option(metavar="N", help="Days for which emails are kept; 0: for ever; 'default': as all teams."),
]
LogDays = Annotated[
    str | None, typer.Option(metavar="N", help="Days for which request logs are kept; 0: no log; 'default'.")
]
MetricsDays = Annotated[
    str | None, typer.Option(metavar="N", help="Days for which metrics are kept; 0: for ever; 'default'.")
]
MostDomains = Annotated[
    str | None, typer.Option(metavar="N", help="Domains that the team may have; 'default': as all teams.")
]
MostWebhooks = Annotated[
    str | None, typer.Option(metavar="N", help="Webhooks that the team may have; 'default': as all teams.")
]
MostApiKeys = Annotated[
    str | None, typer.Option(metavar="N", help="API keys that the team may have; 'default': as all teams.")
]


@group.command("create")
def create(
    name: Name, email: Email, json: Json = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Make a team with one member and a full-access API key, which is printed once."""
    perform(lambda connected: make(connected, name, email, json=json), data=data, database_url=database_url)


@group.command("list")
def list_all(json: Json = False, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """List the teams, oldest first."""
    perform(lambda connected: show_all(connected, json=json), data=data, database_url=database_url)


@group.command("block")
def block(team: NameOrId, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Block a team: its keys are answered with 451 from the next second on; its queue goes on."""
    perform(
        lambda connected: change(connected, team, TeamStatus.ACTIVE, TeamStatus.BLOCKED),
        data=data,
        database_url=database_url,
    )


@group.command("unblock")
def unblock(team: NameOrId, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Let a blocked team work again."""
    perform(
        lambda connected: change(connected, team, TeamStatus.BLOCKED, TeamStatus.ACTIVE),
        data=data,
        database_url=database_url,
    )


@group.command("set")
def set_(
    team: NameOrId,
    rate_limit: RateLimit = None,
    daily_quota: DailyQuota = None,
    monthly_quota: MonthlyQuota = None,
    email_retention_days: EmailDays = None,
    log_retention_days: LogDays = None,
    metrics_retention_days: MetricsDays = None,
    most_domains: MostDomains = None,
    most_webhooks: MostWebhooks = None,
    most_api_keys: MostApiKeys = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Set limits of one team; they hold from the next second on. What is not given stays as it is."""
    texts = {
        "rate_limit": rate_limit,
        "daily_quota": daily_quota,
        "monthly_quota": monthly_quota,
        "email_retention_days": email_retention_days,
        "log_retention_days": log_retention_days,
        "metrics_retention_days": metrics_retention_days,
        "most_domains": most_domains,
        "most_webhooks": most_webhooks,
        "most_api_keys": most_api_keys,
    }
    perform(lambda connected: set_limits(connected, team, texts), data=data, database_url=database_url)


async def make(connected: CommandDatabase, name: str, email: str, *, json: bool) -> int:
    try:
        made = await bootstrap.create_team(connected.pool, name=name, email=email, ids=Ids(SystemClock()))
    except ValueError as wrong:
        raise CommandRefused(str(wrong)) from None
    await record_command(TeamDb(connected.pool, made.id), Act.TEAM_CREATED, name)
    if json:
        show_json({"object": "team", "id": made.id, "name": name, "email": email, "token": made.token})
        return 0
    say(f"team {made.id}")
    say(f"api key {made.token} (shown only now; keep it)")
    return 0


async def show_all(connected: CommandDatabase, *, json: bool) -> int:
    teams = await bootstrap.list_teams(connected.pool)
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


async def change(connected: CommandDatabase, team_name: str, before: TeamStatus, after: TeamStatus) -> int:
    """Take a team from one status to another; a team that is there already stays there."""
    team = await one_team(connected, team_name)
    if team.status not in (before.value, after.value):
        raise CommandRefused(f"The team {team.name!r} is {team.status}; that cannot be changed this way.")
    await operator_acts.set_status(connected.pool, team, after, OPERATOR, SystemClock().now())
    say(f"{team.name} is {after.value}.")
    return 0


def limit_of(team: Team) -> str:
    """Return the team's own request limit in words."""
    if team.rate_limit is None:
        return "as set"
    return str(team.rate_limit) if team.rate_limit else "no limit"
