"""How long `pillarbox serve` takes until its `ready` line, until a killed worker is back, and its stop."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.kit import server, tools
from bench.kit.processes import tree
from bench.kit.results import Report, at_most, ended

READY = b'"worker.ready"'
PATIENCE = 30.0


@dataclass(slots=True)
class Seconds:
    """What was measured."""

    starts: list[float] = field(default_factory=list)
    births: list[float] = field(default_factory=list)
    stops: list[float] = field(default_factory=list)


def measure(report: Report) -> None:
    repetitions = 2 if report.short else 5
    seconds = Seconds()
    first: list[float] = []
    again: list[float] = []
    for number in range(repetitions):
        data = report.folder / f"data{number}"
        first.append(once(report, data, seconds))
        again += [once(report, data, seconds) for _ in range(2)]
    report.result("first start", max(first), "s", at_most(5), note=f"worst of {len(first)}, {spread(first)}")
    report.result(
        "start on an existing folder",
        max(again),
        "s",
        at_most(2),
        note=f"worst of {len(again)}, {spread(again)}",
    )
    for name, values in (
        ("a killed worker is back", seconds.births),
        ("stop of an idle server", seconds.stops),
    ):
        report.result(name, max(values), "s", note=f"worst of {len(values)}, {spread(values)}")


def once(report: Report, data: Path, seconds: Seconds) -> float:
    """One start, one killed worker and one stop; the seconds until `ready`."""
    log = data.with_suffix(".log")
    process, ready_after = server.start(data, log)
    seconds.births.append(reborn(process, log))
    seconds.stops.append(tools.end(process))
    if process.returncode != 0:
        report.fault(f"pillarbox serve ended with status {process.returncode}")
    return ready_after


def reborn(process: subprocess.Popen[bytes], log: Path) -> float:
    """The seconds from the end of a worker until its replacement is ready."""
    workers = tree(process.pid).workers
    began = time.monotonic()
    os.kill(workers[0], signal.SIGKILL)
    while READY not in log.read_bytes():
        if time.monotonic() - began > PATIENCE:
            raise RuntimeError("no worker came in the place of a killed one")
        time.sleep(0.002)
    return time.monotonic() - began


def spread(values: list[float]) -> str:
    return f"median {statistics.median(values):.2f} s"


if __name__ == "__main__":
    ended("start", measure, __doc__)
