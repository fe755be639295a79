"""What other work does to the latency of `POST /emails`, in a run: its p99 beside the work ÷ alone."""

from __future__ import annotations

from collections.abc import Sequence

from bench.kit.load import Answered
from bench.kit.results import Report, at_most

LIMIT, GOAL = 1.5, 1.2


def report_ratio(
    report: Report, work: str, alone: Answered, waves: Sequence[Answered], *, limit: float = LIMIT
) -> Answered:
    """Print the ratio, with the median of the waves that met the work; returns that wave."""
    beside = sorted(waves, key=lambda wave: wave.p99)[len(waves) // 2]
    for done in (alone, *waves):
        if done.trouble:
            report.fault(f"POST /emails, {work}: {done.trouble}")
    report.result(
        f"POST /emails, p99 beside {work} ÷ alone",
        beside.p99 / alone.p99,
        "×",
        at_most(limit),
        f"goal {GOAL}; p99 {beside.p99:.1f} ms of {len(waves)} times beside, {alone.p99:.1f} alone; "
        f"p50 {beside.p50:.1f} and {alone.p50:.1f}; {beside.rate:.0f} and {alone.rate:.0f}/s",
    )
    return beside
