"""What inboxes cost: each part in turn, or those that are named."""

from __future__ import annotations

from bench.inboxes import arrivals, drafts, search, threads
from bench.kit.results import Report, ended

PARTS = (threads.measure, search.measure, arrivals.measure, drafts.measure)


def measure(report: Report) -> None:
    for part in PARTS:
        part(report)


if __name__ == "__main__":
    ended("inboxes", measure, __doc__)
