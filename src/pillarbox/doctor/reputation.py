"""Reputation: bounce and complaint rates by domain, and the limits of mailbox providers (BNC-09)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import asyncpg

from pillarbox.doctor.checks import Check, Level

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
        "bounced",
        "sent",
        4.0,
        5,
        "Send only to addresses that were confirmed, and see where the bad came from.",
    ),
    RateLimitLevel(
        "complained", "delivered", 0.08, 3, "Send only what was asked for, with an unsubscribe link in it."
    ),
)

# Across teams: the operator's machine sends for all of them. The days are UTC days, as the rollups have them.
RATES = """
    SELECT f.domain_name, sum(f.sent)::bigint AS sent, sum(f.delivered)::bigint AS delivered,
           sum(f.bounced)::bigint AS bounced, sum(f.complained)::bigint AS complained
      FROM teams t
     CROSS JOIN LATERAL (
           SELECT r.domain_name, r.sent, r.delivered, r.complained,
                  r.bounced_transient + r.bounced_permanent + r.bounced_undetermined AS bounced
             FROM rollups r
            WHERE r.team_id = t.id AND r.level = 3 AND r.start >= $1
           UNION ALL
           SELECT i.domain_name, i.sent, i.delivered, i.complained,
                  i.bounced_transient + i.bounced_permanent + i.bounced_undetermined
             FROM metric_increments i
            WHERE i.team_id = t.id AND i.start >= $1) AS f
     GROUP BY f.domain_name
    HAVING sum(f.sent) >= $2
     ORDER BY f.domain_name
"""


async def reputation_checks(pool: asyncpg.Pool, now: datetime) -> list[Check]:
    """A warning for each domain that is over a limit, else one line that says there is none."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    rows = await pool.fetch(RATES, midnight - timedelta(days=DAYS - 1), LEAST)
    worse = [check for row in rows for check in _over(row)]
    if worse:
        return worse[:MOST_SHOWN]
    looked = f"{len(rows)} domains with {LEAST} mails or more in {DAYS} days, none over a limit"
    return [Check(NAME, Level.OK, TITLE, looked)]


def _over(row: Any) -> Sequence[Check]:
    return [
        Check(
            f"{NAME}.{limit.part}",
            Level.WARNING,
            TITLE,
            f"{row['domain_name']}: {row[limit.part]} of {row[limit.whole]} {limit.part} in {DAYS} days",
            f"less than {limit.percent:g} %",
            limit.step,
        )
        for limit in LIMITS
        if row[limit.part] >= limit.least and row[limit.part] * 100 >= row[limit.whole] * limit.percent
    ]
