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


class Emails(Struct, kw_only=True):
    used: int
    limit: int | None
    sent: int
    received: int
    resets_at: IsoTime


class EmailWindows(Struct, kw_only=True):
    daily: Emails
    monthly: Emails


class Counted(Struct, kw_only=True):
    used: int
    limit: int | None


class Credits(Struct, kw_only=True):
    used: int
    limit: int | None
    next_increase_at: IsoTime | None


class Runs(Struct, kw_only=True):
    used: int
    limit: int
    resets_at: IsoTime


class RateLimit(Struct, kw_only=True):
    limit: int
    duration: str


class Usage(Struct, kw_only=True):
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
    daily = Emails(
        used=used.day_sent + used.day_received,
        limit=used.daily_quota,
        sent=used.day_sent,
        received=used.day_received,
        resets_at=day,
    )
    monthly = Emails(
        used=used.month_sent + used.month_received,
        limit=UNLIMITED if used.monthly_quota is None else used.monthly_quota,
        sent=used.month_sent,
        received=used.month_received,
        resets_at=month,
    )
    return Usage(
        object="usage",
        emails=EmailWindows(daily=daily, monthly=monthly),
        contacts=Counted(used=owned.contacts, limit=UNLIMITED),
        segments=Counted(used=owned.segments, limit=None),
        broadcasts=Counted(used=owned.broadcasts, limit=None),
        ai_credits=Credits(used=0, limit=None, next_increase_at=None),
        automation_runs=Runs(used=owned.automation_runs, limit=UNLIMITED, resets_at=month),
        domains=Counted(
            used=owned.domains,
            limit=limits.most_domains if owned.most_domains is None else owned.most_domains,
        ),
        rate_limit=RateLimit(limit=rate_limit, duration="1000ms"),
    )
