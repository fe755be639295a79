"""`pillarbox teams show`: a team with what it has used."""

from __future__ import annotations

import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.terminal.answers import Json, perform, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.teams.commands.choosing import one_team
from pillarbox.teams.commands.limits import NameOrId, shape
from pillarbox.teams.limits import LIMITS, shown
from pillarbox.teams.slugs import slug
from pillarbox.usage.meter import UsageMeter

group = typer.Typer()


@group.command("show")
def show(team: NameOrId, json: Json = False, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Show a team with its limits and what it has used."""
    perform(lambda connected: show_team(connected, team, json=json), data=data, database_url=database_url)


async def show_team(connected: CommandDatabase, team_name: str, *, json: bool) -> int:
    """Show everything about one team, with what it has used."""
    team = await one_team(connected, team_name)
    used = await UsageMeter(connected.pool, SystemClock()).read(connected.pool, team.id)
    today, month = used.day_sent + used.day_received, used.month_sent + used.month_received
    if json:
        limits = {limit.column: getattr(team, limit.column) for limit in LIMITS}
        show_json({**shape(team), **limits, "used_today": today, "used_this_month": month})
        return 0
    rows: list[tuple[str, object]] = [
        ("Id", team.id),
        ("Number", team.number),
        ("Name", team.name),
        ("Slug", slug(team.number)),
        ("Email", team.email),
        ("Status", team.status),
        ("Created", team.created_at),
        *((limit.title, shown(connected.settings, team, limit)) for limit in LIMITS),
        ("Emails used today", today),
        ("Emails used this month", month),
    ]
    show_table(("Team", ""), rows)
    return 0
