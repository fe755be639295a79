"""Limits, quotas and retentions that a team may have of its own, in place of the installation's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pillarbox.kernel.settings.setting import Setting
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.settings.table import RATE_LIMIT
from pillarbox.teams.settings import (
    EMAIL_RETENTION_DAYS,
    LOG_RETENTION_DAYS,
    METRICS_RETENTION_DAYS,
    MOST_API_KEYS,
    MOST_DOMAINS,
    MOST_WEBHOOKS,
)
from pillarbox.teams.team import Team

NONE: Final = "none"
DEFAULT: Final = "default"


class LimitRefusedError(ValueError):
    """The text is no number that the limit may have."""


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
        raise LimitRefusedError(f"is a number from 0 to {self.most}, or {self.absent!r}, not {text!r}.")


LIMITS: Final = (
    TeamLimitOption("rate_limit", "Requests/s", 1_000_000, DEFAULT, setting=RATE_LIMIT),
    TeamLimitOption("daily_quota", "Emails a day", 10**15, NONE),
    TeamLimitOption("monthly_quota", "Emails a month", 10**15, NONE),
    TeamLimitOption(
        "email_retention_days", "Days emails are kept", 36_500, DEFAULT, setting=EMAIL_RETENTION_DAYS
    ),
    TeamLimitOption("log_retention_days", "Days logs are kept", 36_500, DEFAULT, setting=LOG_RETENTION_DAYS),
    TeamLimitOption(
        "metrics_retention_days", "Days metrics are kept", 36_500, DEFAULT, setting=METRICS_RETENTION_DAYS
    ),
    TeamLimitOption("most_domains", "Domains", 1_000_000, DEFAULT, setting=MOST_DOMAINS),
    TeamLimitOption("most_webhooks", "Webhooks", 500, DEFAULT, setting=MOST_WEBHOOKS),
    TeamLimitOption("most_api_keys", "API keys", 100_000, DEFAULT, setting=MOST_API_KEYS),
)


def usual(settings: Settings, limit: TeamLimitOption) -> str:
    """Return what holds for teams without a number of their own."""
    if limit.setting is None:
        return limit.absent
    number = settings[limit.setting]
    return NONE if number is None else str(number)


def shown(settings: Settings, team: Team, limit: TeamLimitOption) -> str:
    """Return the number that holds, and where it comes from when it is not the team's own."""
    own = getattr(team, limit.column)
    if own is not None:
        return str(own)
    return limit.absent if limit.setting is None else f"{usual(settings, limit)} ({DEFAULT})"
