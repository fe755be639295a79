"""Measures the processes of this machine, from /proc, when Prometheus asks.

The supervisor reads for all of them, so a worker whose event loop stands still is measured too, and no worker
spends time on it. A process is named by its kind (`supervisor`, `fork_server`, `worker`, `database`) and, for
workers, by its place among them: the labels are the same after a restart, and a counter that begins anew is
what Prometheus expects of one.

A process that has an event loop writes its numbers once a second. How old they are says whether it still
works: while it hangs, its numbers stay what they were when all was well.

`database` is the embedded server with all its sessions. Their memory is what each has alone, and what they
share once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pillarbox.kernel.observability.metrics import SUFFIX
from pillarbox.kernel.process.children import stat_fields

LABELS: Final = ("process", "index")
WRITING: Final = frozenset({"supervisor", "worker"})
"""Kinds that write their numbers."""

TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGESIZE")

UTIME, STIME, CUTIME, CSTIME, STARTED = 11, 12, 13, 14, 19
"""Fields of /proc/PID/stat behind the name (proc(5), where they are the 14th to 17th and the 22nd)."""

RESIDENT, SHARED = 1, 2
"""Fields of /proc/PID/statm."""


class MeasuredProcess(NamedTuple):
    """A process to be measured; `place` tells workers apart; `has_family`: together with its children."""

    kind: str
    place: str
    pid: int
    has_family: bool = False


class ProcessUsage(NamedTuple):
    """The resources of a process: processor seconds, bytes of memory, open files and their limit; `started`
    is a Unix time. `files` is None where the system does not let us count them."""

    cpu: float
    memory: int
    files: int | None
    most_files: float
    started: float


class ProcessMetrics(Collector):
    """Measures the processes that `processes` names, at each request. Their numbers are in `folder`."""

    def __init__(self, processes: Callable[[], Iterable[MeasuredProcess]], folder: Path) -> None:
        self._processes = processes
        self._folder = folder
        self._booted = _boot_time()

    def collect(self) -> Iterator[Metric]:
        """Yield every metric once; a process that is just ending is left out."""
        cpu = CounterMetricFamily(
            "pillarbox_process_cpu_seconds", "Processor time of the processes.", labels=LABELS
        )
        memory = GaugeMetricFamily(
            "pillarbox_process_memory_bytes", "Resident memory of the processes.", labels=LABELS
        )
        files = GaugeMetricFamily("pillarbox_process_open_files", "Open file descriptors.", labels=LABELS)
        most = GaugeMetricFamily(
            "pillarbox_process_max_files", "How many file descriptors a process may open.", labels=LABELS
        )
        started = GaugeMetricFamily(
            "pillarbox_process_start_time_seconds", "When the process started (Unix time).", labels=LABELS
        )
        silent = GaugeMetricFamily(
            "pillarbox_process_silent_seconds", "Since when the process wrote no numbers.", labels=LABELS
        )
        families: list[CounterMetricFamily | GaugeMetricFamily] = [cpu, memory, files, most, started]
        for one in self._processes():
            usage = usage_of(one, self._booted)
            if usage is not None:
                for family, value in zip(families, usage, strict=True):
                    if value is not None:
                        family.add_metric((one.kind, one.place), value)
                if one.kind in WRITING:
                    silent.add_metric((one.kind, one.place), self._silent(one.pid, usage.started))
        yield from families
        yield silent

    def _silent(self, pid: int, started: float) -> float:
        """Return the seconds since the process has written, or since it began where it never has."""
        try:
            written = (self._folder / f"{pid}{SUFFIX}").stat().st_mtime
        except OSError:
            written = started
        return max(0.0, time.time() - written)


def usage_of(measured_process: MeasuredProcess, booted: float) -> ProcessUsage | None:
    """Return the resources that a process uses now; None where it is gone or may not be read."""
    try:
        found = _usage(measured_process.pid, booted, with_ended=measured_process.has_family)
        for child in _children(measured_process.pid) if measured_process.has_family else ():
            with suppress(OSError, ValueError, IndexError):
                found = _together(found, child, _usage(child, booted, with_ended=False))
    except (OSError, ValueError, IndexError):
        return None
    return found


def _usage(pid: int, booted: float, *, with_ended: bool) -> ProcessUsage:
    """Return the usage of one process; `with_ended` adds the processor time of children that have ended."""
    fields = stat_fields(str(pid))
    counted = (UTIME, STIME, CUTIME, CSTIME) if with_ended else (UTIME, STIME)
    return ProcessUsage(
        cpu=sum(int(fields[at]) for at in counted) / TICKS,
        memory=_memory(pid)[RESIDENT] * PAGE,
        files=_files(pid),
        most_files=_most_files(pid),
        started=booted + int(fields[STARTED]) / TICKS,
    )


def _together(process_usage: ProcessUsage, child: int, more: ProcessUsage) -> ProcessUsage:
    pages = _memory(child)
    return process_usage._replace(
        cpu=process_usage.cpu + more.cpu,
        memory=process_usage.memory + (pages[RESIDENT] - pages[SHARED]) * PAGE,
        files=None
        if process_usage.files is None or more.files is None
        else max(process_usage.files, more.files),
    )


def _memory(pid: int) -> list[int]:
    return [int(pages) for pages in Path(f"/proc/{pid}/statm").read_bytes().split()]


def _files(pid: int) -> int | None:
    try:
        return sum(1 for _ in os.scandir(f"/proc/{pid}/fd"))
    except PermissionError:
        return None


def _most_files(pid: int) -> float:
    for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
        if line.startswith("Max open files"):
            soft = line.split()[3]
            return float("inf") if soft == "unlimited" else int(soft)
    raise ValueError("the system names no limit of open files")


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()]
    except FileNotFoundError:
        # A kernel without CONFIG_PROC_CHILDREN; then the first process stands alone.
        return []


def _boot_time() -> float:
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0
