"""The shape of `GET /usage` (conventions section 12); field order is the contract's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.usage.queries import OwnedResources, UsedUnits
from pillarbox.usage.windows import next_day, next_month

UNLIMITED: Final = 9007199254740991
"""Where official clients expect a number; the largest that all of them read exactly."""


class Emails(Struct):
    used: int
    limit: int | None
    sent: int
    received: int
    resets_at: IsoTime


class EmailWindows(Struct):
    daily: Emails
    monthly: Emails


class Counted(Struct):
    used: int
    limit: int | None


class Credits(Struct):
    used: int
    limit: int | None
    next_increase_at: IsoTime | None


class Runs(Struct):
    used: int
    limit: int
    resets_at: IsoTime


class RateLimit(Struct):
    limit: int
    duration: str


class Usage(Struct):
    object: Literal["usage"]
    emails: EmailWindows
    contacts: Counted
    segments: Counted
    broadcasts: Counted
    ai_credits: Credits
    automation_runs: Runs
    domains: Counted
    rate_limit: RateLimit


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """The operator's limits for all teams; None is no limit."""

    rate_limit: int
    most_domains: int | None


def usage(
    used: UsedUnits, owned: OwnedResources, limits: UsageLimits, rate_limit: int, now: datetime
) -> Usage:
    """Return the usage of a team; runs of automations count from the beginning of the month of `now`."""
    day, month = iso_style(next_day(now)), iso_style(next_month(now))
    daily = Emails(used.day_sent + used.day_received, used.daily_quota, used.day_sent, used.day_received, day)
    monthly = Emails(
        used.month_sent + used.month_received,
        UNLIMITED if used.monthly_quota is None else used.monthly_quota,
        used.month_sent,
        used.month_received,
        month,
    )
    return Usage(
        "usage",
        EmailWindows(daily, monthly),
        contacts=Counted(owned.contacts, UNLIMITED),
        segments=Counted(owned.segments, None),
        broadcasts=Counted(owned.broadcasts, None),
        ai_credits=Credits(0, None, None),
        automation_runs=Runs(owned.automation_runs, UNLIMITED, month),
        domains=Counted(
            owned.domains, limits.most_domains if owned.most_domains is None else owned.most_domains
        ),
        rate_limit=RateLimit(rate_limit, "1000ms"),
    )
