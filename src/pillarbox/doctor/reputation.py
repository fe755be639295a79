"""Reputation: bounce and complaint rates by domain, and the limits of mailbox providers (BNC-09)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final

import asyncpg

from pillarbox.doctor import queries
from pillarbox.doctor.checks import Check, Level
from pillarbox.doctor.queries import DomainCounts

NAME: Final = "standing"
TITLE: Final = "Few mails bounce, and few recipients complain"
DAYS: Final = 7
LEAST: Final = 100
"""Mails sent in these days below which a rate says nothing."""
MOST_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class RateLimitLevel:
    """A share of mails, in percent, from which on providers slow down or refuse what a domain sends. Fewer
    than `least` cases are chance."""

    part: str
    whole: str
    percent: float
    least: int
    step: str


LIMITS: Final = (
    RateLimitLevel(
        part="bounced",
        whole="sent",
        percent=4.0,
        least=5,
        step="Send only to addresses that were confirmed, and see where the bad came from.",
    ),
    RateLimitLevel(
        part="complained",
        whole="delivered",
        percent=0.08,
        least=3,
        step="Send only what was asked for, with an unsubscribe link in it.",
    ),
)


async def reputation_checks(pool: asyncpg.Pool, now: datetime) -> list[Check]:
    """Return a warning for each domain that is over a limit, else one line that says there is none."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    domains = await queries.domain_counts(pool, midnight - timedelta(days=DAYS - 1), LEAST)
    worse = [check for domain in domains for check in _over(domain)]
    if worse:
        return worse[:MOST_SHOWN]
    looked = f"{len(domains)} domains with {LEAST} mails or more in {DAYS} days, none over a limit"
    return [Check(NAME, Level.OK, TITLE, looked)]


def _over(domain: DomainCounts) -> Sequence[Check]:
    counts = asdict(domain)
    return [
        Check(
            name=f"{NAME}.{limit.part}",
            level=Level.WARNING,
            title=TITLE,
            found=f"{domain.domain_name}: {counts[limit.part]} of {counts[limit.whole]} {limit.part}"
            f" in {DAYS} days",
            expected=f"less than {limit.percent:g} %",
            step=limit.step,
        )
        for limit in LIMITS
        if counts[limit.part] >= limit.least
        and counts[limit.part] * 100 >= counts[limit.whole] * limit.percent
    ]
