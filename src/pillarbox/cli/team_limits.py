"""What the operator sets for one team: limits, quotas and retentions of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pillarbox.cli.answers import Refused, say, show_json, show_table
from pillarbox.cli.choosing import one_team
from pillarbox.cli.connect import Connected
from pillarbox.kernel.clock import SystemClock
from pillarbox.teams import bootstrap
from pillarbox.teams.queries import Team
from pillarbox.teams.slugs import slug
from pillarbox.usage.meter import UsageMeter

NONE: Final = "none"
DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class Limit:
    """One of them. `absent` is the word that takes it away; `setting` is what holds then, if anything."""

    column: str
    title: str
    most: int
    absent: str
    setting: str | None = None

    def read(self, text: str) -> int | None:
        """The number that an operator wrote, or None for the word."""
        if text == self.absent:
            return None
        if text.isascii() and text.isdigit() and int(text) <= self.most:
            return int(text)
        flag = self.column.replace("_", "-")
        raise Refused(f"--{flag} is a number from 0 to {self.most}, or {self.absent!r}, not {text!r}.")


LIMITS: Final = (
    Limit("rate_limit", "Requests/s", 1_000_000, DEFAULT, "rate_limit"),
    Limit("daily_quota", "Emails a day", 10**15, NONE),
    Limit("monthly_quota", "Emails a month", 10**15, NONE),
    Limit("email_retention_days", "Days emails are kept", 36_500, DEFAULT, "email_retention_days"),
    Limit("log_retention_days", "Days logs are kept", 36_500, DEFAULT, "log_retention_days"),
    Limit("metrics_retention_days", "Days metrics are kept", 36_500, DEFAULT, "metrics_retention_days"),
    Limit("most_domains", "Domains", 1_000_000, DEFAULT, "most_domains"),
    Limit("most_webhooks", "Webhooks", 500, DEFAULT, "most_webhooks"),
    Limit("most_api_keys", "API keys", 100_000, DEFAULT, "most_api_keys"),
)


async def set_limits(connected: Connected, wanted: str, texts: Mapping[str, str | None]) -> int:
    """Set those that were given."""
    given = {
        limit.column: limit.read(text) for limit in LIMITS if (text := texts.get(limit.column)) is not None
    }
    if not given:
        raise Refused("Nothing to set; `pillarbox teams set --help` shows what there is.")
    team = await one_team(connected, wanted)
    await bootstrap.set_limits(connected.pool, team.id, given)
    changed = await one_team(connected, str(team.id))
    for limit in LIMITS:
        if limit.column in given:
            say(f"{team.name}: {limit.title.lower()} {shown(connected, changed, limit)}")
    return 0


async def show_team(connected: Connected, wanted: str, *, json: bool) -> int:
    """Everything about one team, with what it has used."""
    team = await one_team(connected, wanted)
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
        *((limit.title, shown(connected, team, limit)) for limit in LIMITS),
        ("Emails used today", today),
        ("Emails used this month", month),
    ]
    show_table(("Team", ""), rows)
    return 0


def shown(connected: Connected, team: Team, limit: Limit) -> str:
    """The number that holds, and where it comes from when it is not the team's own."""
    own = getattr(team, limit.column)
    if own is not None:
        return str(own)
    if limit.setting is None:
        return limit.absent
    usual = getattr(connected.settings, limit.setting)
    return f"{NONE if usual is None else usual} ({DEFAULT})"


def shape(team: Team) -> dict[str, object]:
    """A team as JSON."""
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
