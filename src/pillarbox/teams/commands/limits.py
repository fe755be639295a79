"""Commands for one team's own limits, quotas and retentions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.terminal.answers import CommandRefused, say
from pillarbox.kernel.terminal.connect import CommandDatabase
from pillarbox.people.audit import OPERATOR
from pillarbox.teams import operator_acts
from pillarbox.teams.commands.choosing import one_team
from pillarbox.teams.limits import LIMITS, LimitRefusedError, TeamLimitOption, shown
from pillarbox.teams.slugs import slug
from pillarbox.teams.team import Team

NameOrId = Annotated[str, typer.Argument(metavar="NAME_OR_ID", help="The team, by name or id.")]


async def set_limits(connected: CommandDatabase, team_name: str, texts: Mapping[str, str | None]) -> int:
    """Set those that were given."""
    given = {
        limit.column: read(limit, text) for limit in LIMITS if (text := texts.get(limit.column)) is not None
    }
    if not given:
        raise CommandRefused("Nothing to set; `pillarbox teams set --help` shows what there is.")
    team = await one_team(connected, team_name)
    await operator_acts.set_limits(connected.pool, team, given, OPERATOR, SystemClock().now())
    changed = await one_team(connected, str(team.id))
    for limit in LIMITS:
        if limit.column in given:
            say(f"{team.name}: {limit.title.lower()} {shown(connected.settings, changed, limit)}")
    return 0


def read(limit: TeamLimitOption, text: str) -> int | None:
    """Return the number of an option, or None for the word that takes the limit away."""
    try:
        return limit.read(text)
    except LimitRefusedError as refused:
        raise CommandRefused(f"--{limit.column.replace('_', '-')} {refused}") from None


def shape(team: Team) -> dict[str, object]:
    """Return a team as JSON."""
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
