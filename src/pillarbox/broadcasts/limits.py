"""When a broadcast stops by itself: too much of it bounces, or too many people complain.

Such counts mean that the addresses were not asked, or are old. Going on would harm the sender's reputation
at all mail servers, for this mail and for all that follows. So the broadcast is paused, and goes on only when
somebody says so; from then on only what happens later counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pillarbox.broadcasts.copy_counts_queries import CopyCounts


@dataclass(frozen=True, slots=True)
class BrakeLimits:
    """The operator's limits in percent; 0 is none. They count from so many sent copies on."""

    bounces: Fraction = Fraction(5)
    complaints: Fraction = Fraction(3, 10)
    after: int = 500


def reason_to_pause(counts: CopyCounts, limits: BrakeLimits) -> str | None:
    """Return why a broadcast with these counts is paused, in a sentence for people; None where it goes on."""
    if counts.sent < limits.after:
        return None
    if _passes(counts.bounced, counts.sent, limits.bounces):
        return (
            f"{_share(counts.bounced, counts.sent)} % of {counts.sent:,} sent copies bounced; the limit "
            f"is {float(limits.bounces):g} %."
        )
    if _passes(counts.complained, counts.delivered, limits.complaints):
        return (
            f"{_share(counts.complained, counts.delivered)} % of {counts.delivered:,} delivered copies "
            f"were complained about; the limit is {float(limits.complaints):g} %."
        )
    return None


def _passes(part: int, whole: int, limit: Fraction) -> bool:
    return limit > 0 and 100 * part > limit * whole


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.2f}"
