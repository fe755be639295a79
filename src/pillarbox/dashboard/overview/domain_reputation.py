"""The rates of domains that mailbox providers watch, beside the limits that they set."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, NamedTuple

from pillarbox.dashboard.frame.metrics_periods import metric_range
from pillarbox.dashboard.frame.times import percent
from pillarbox.dashboard.frame.visit import Visit

REPUTATION_DAYS: Final = timedelta(days=30)
RATED: Final = ("sent", "delivered", "bounced_permanent", "complained")
COMPLAINT_LIMIT: Final = 0.3
BOUNCE_LIMIT: Final = 2.0
"""Percentages above which mailbox providers hold it against the sender: complaints and hard bounces."""


class DomainRates(NamedTuple):
    """The number of emails that a domain sent in 30 days, and its rates with their tones."""

    sent: int
    hard_bounces: str
    hard_bounce_tone: str
    complaints: str
    complaint_tone: str

    @property
    def is_bad(self) -> bool:
        """Whether a rate is above its limit."""
        return "bad" in (self.hard_bounce_tone, self.complaint_tone)


async def rates_by_domain(visit: Visit, *, shown: bool = True) -> dict[str, DomainRates]:
    """Return the rates of each domain that sent anything in 30 days, by its id."""
    answer = await visit.get(
        "/emails/metrics",
        shown=shown,
        **metric_range(visit.request.at - REPUTATION_DAYS, visit.request.at, visit.request.at),
        metrics=",".join(RATED),
        dimensions="domain",
    )
    return {row["domain_id"]: rates_of(row) for row in answer["data"] if row["domain_id"]}


def rates_of(row: dict[str, Any]) -> DomainRates:
    """Return the rates of a row of metrics."""
    return DomainRates(
        sent=row["sent"],
        hard_bounces=percent(row["bounced_permanent"], row["sent"], 2),
        hard_bounce_tone=tone_beside(row["bounced_permanent"], row["sent"], BOUNCE_LIMIT),
        complaints=percent(row["complained"], row["delivered"], 2),
        complaint_tone=tone_beside(row["complained"], row["delivered"], COMPLAINT_LIMIT),
    )


def tone_beside(part: int, whole: int, limit: float) -> str:
    """Return the tone of a rate beside a limit in percent."""
    return "bad" if whole and 100 * part / whole > limit else "quiet"
