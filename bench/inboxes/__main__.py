"""What inboxes cost: each part in turn, or those that are named."""

from __future__ import annotations

<<<<<<< HEAD
from bench.inboxes import drafts, threads
from bench.kit.results import Report, ended

PARTS = (threads.measure, drafts.measure)
=======
from bench.inboxes import arrivals, threads
from bench.kit.results import Report, ended

PARTS = (threads.measure, arrivals.measure)
>>>>>>> r17


def measure(report: Report) -> None:
    for part in PARTS:
        part(report)


if __name__ == "__main__":
    ended("inboxes", measure, __doc__)
