"""How long `pillarbox serve` takes until its `ready` line, and how long its stop takes."""

from __future__ import annotations

import statistics
from pathlib import Path

from bench.kit import server, tools
from bench.kit.figures import Report, at_most, ended


def measure(report: Report) -> None:
    rounds = 2 if report.short else 5
    first: list[float] = []
    again: list[float] = []
    stops: list[float] = []
    for number in range(rounds):
        data = report.folder / f"data{number}"
        first.append(once(report, data, stops))
        again += [once(report, data, stops) for _ in range(2)]
    report.figure("first start", max(first), "s", at_most(5), note=f"worst of {len(first)}, {spread(first)}")
    report.figure(
        "start on an existing folder",
        max(again),
        "s",
        at_most(2),
        note=f"worst of {len(again)}, {spread(again)}",
    )
    report.figure("stop of an idle server", max(stops), "s", note=f"worst of {len(stops)}, {spread(stops)}")


def once(report: Report, data: Path, stops: list[float]) -> float:
    """One start and stop; the seconds until `ready`."""
    process, ready_after = server.start(data, data.with_suffix(".log"))
    stops.append(tools.end(process))
    if process.returncode != 0:
        report.fault(f"pillarbox serve ended with status {process.returncode}")
    return ready_after


def spread(values: list[float]) -> str:
    return f"median {statistics.median(values):.2f} s"


if __name__ == "__main__":
    ended("start", measure, __doc__)
