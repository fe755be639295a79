"""Commands for one team's own limits, quotas and retentions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.settings.setting import Setting
from pillarbox.kernel.settings.table import RATE_LIMIT
from pillarbox.kernel.terminal.answers import CommandRefused, say
from pillarbox.kernel.terminal.connect import CommandDatabase
from pillarbox.people.audit import Act, record_command
from pillarbox.teams import bootstrap
from pillarbox.teams.commands.choosing import one_team
from pillarbox.teams.settings import (
    EMAIL_RETENTION_DAYS,
    LOG_RETENTION_DAYS,
    METRICS_RETENTION_DAYS,
    MOST_API_KEYS,
    MOST_DOMAINS,
    MOST_WEBHOOKS,
)
from pillarbox.teams.slugs import slug
from pillarbox.teams.team import Team

NameOrId = Annotated[str, typer.Argument(metavar="NAME_OR_ID", help="The team, by name or id.")]

NONE: Final = "none"
DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class TeamLimitOption:
    """One of them. `absent` is the word that takes it away; `setting` is what holds then, if anything."""

    column: str
    title: str
    most: int
    absent: str
    setting: Setting[int | None] | None = None

    def read(self, text: str) -> int | None:
        """Return the number that an operator wrote, or None for the word."""
        if text == self.absent:
            return None
        if text.isascii() and text.isdigit() and int(text) <= self.most:
            return int(text)
        flag = self.column.replace("_", "-")
        raise CommandRefused(f"--{flag} is a number from 0 to {self.most}, or {self.absent!r}, not {text!r}.")


LIMITS: Final = (
    TeamLimitOption(
        column="rate_limit", title="Requests/s", most=1_000_000, absent=DEFAULT, setting=RATE_LIMIT
    ),
    TeamLimitOption("daily_quota", "Emails a day", 10**15, NONE),
    TeamLimitOption("monthly_quota", "Emails a month", 10**15, NONE),
    TeamLimitOption(
        column="email_retention_days",
        title="Days emails are kept",
        most=36_500,
        absent=DEFAULT,
        setting=EMAIL_RETENTION_DAYS,
    ),
    TeamLimitOption(
        column="log_retention_days",
        title="Days logs are kept",
        most=36_500,
        absent=DEFAULT,
        setting=LOG_RETENTION_DAYS,
    ),
    TeamLimitOption(
        column="metrics_retention_days",
        title="Days metrics are kept",
        most=36_500,
        absent=DEFAULT,
        setting=METRICS_RETENTION_DAYS,
    ),
    TeamLimitOption(
        column="most_domains", title="Domains", most=1_000_000, absent=DEFAULT, setting=MOST_DOMAINS
    ),
    TeamLimitOption(
        column="most_webhooks", title="Webhooks", most=500, absent=DEFAULT, setting=MOST_WEBHOOKS
    ),
    TeamLimitOption(
        column="most_api_keys", title="API keys", most=100_000, absent=DEFAULT, setting=MOST_API_KEYS
    ),
)


async def set_limits(connected: CommandDatabase, team_name: str, texts: Mapping[str, str | None]) -> int:
    """Set those that were given."""
    given = {
        limit.column: limit.read(text) for limit in LIMITS if (text := texts.get(limit.column)) is not None
    }
    if not given:
        raise CommandRefused("Nothing to set; `pillarbox teams set --help` shows what there is.")
    team = await one_team(connected, team_name)
    async with TeamDb(connected.pool, team.id).transaction() as db:
        await bootstrap.set_limits(db.source, team.id, given)
        await record_command(db, Act.TEAM_LIMITS_SET, team.name, given)
    changed = await one_team(connected, str(team.id))
    for limit in LIMITS:
        if limit.column in given:
            say(f"{team.name}: {limit.title.lower()} {shown(connected, changed, limit)}")
    return 0


def shown(connected: CommandDatabase, team: Team, limit: TeamLimitOption) -> str:
    """Return the number that holds, and where it comes from when it is not the team's own."""
    own = getattr(team, limit.column)
    if own is not None:
        return str(own)
    if limit.setting is None:
        return limit.absent
    usual = connected.settings[limit.setting]
    return f"{NONE if usual is None else usual} ({DEFAULT})"


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
