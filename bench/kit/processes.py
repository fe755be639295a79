"""Processor time and memory of processes, from /proc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

TICK = os.sysconf("SC_CLK_TCK")


class Tree(NamedTuple):
    """The processes of one Pillarbox, by what they are."""

    supervisor: int
    nursery: list[int]
    workers: list[int]
    postgres: list[int]


def tree(supervisor: int) -> Tree:
    """The supervisor's children, distinguished by their command lines."""
    nursery, workers, postgres = [], [], []
    for pid in children(supervisor):
        if b"pillarbox.worker" in command_line(pid):
            workers.append(pid)
        elif b"pillarbox.fork_server" in command_line(pid):
            nursery.append(pid)
        else:
            postgres += [pid, *children(pid)]
    return Tree(supervisor, nursery, workers, postgres)


def children(pid: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and parent(int(entry)) == pid:
            found.append(int(entry))
    return sorted(found)


def parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time that these processes and their reaped children have used."""
    total = 0
    for pid in pids:
        fields = _stat(pid)
        if fields:
            total += sum(int(fields[at]) for at in (11, 12, 13, 14))
    return total / TICK


def running_seconds(pid: int) -> float:
    """Processor time of one process with all its threads, to the nanosecond; 0 for one that is gone."""
    spent = 0
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            spent += int((thread / "schedstat").read_text().split()[0])
    return spent / 1e9


def memory_mb(pid: int, row: str = "VmRSS") -> float:
    """Resident memory now (`VmRSS`) or at its highest (`VmHWM`), in MB; 0 for a process that is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(row + ":")), 0.0)


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


class Meter:
    """Processor time by program between two moments."""

    def __init__(self, supervisor: int, **others: int) -> None:
        found = tree(supervisor)
        self._groups = {"pillarbox": [supervisor, *found.nursery, *found.workers], "postgres": found.postgres}
        self._groups |= {name: [pid] for name, pid in others.items()}
        self._supervisor = supervisor
        self._before = {name: cpu_seconds(pids) for name, pids in self._groups.items()}

    def used(self) -> dict[str, float]:
        """Seconds since the start; connections that PostgreSQL opened meanwhile are counted."""
        self._groups["postgres"] = tree(self._supervisor).postgres
        return {name: cpu_seconds(pids) - self._before[name] for name, pids in self._groups.items()}


def shares(used: dict[str, float], mails: int) -> str:
    """Processor time per mail, as text."""
    parts = [f"{name} {seconds / max(1, mails) * 1e6:,.0f}" for name, seconds in used.items()]
    return "CPU per mail, µs: " + ", ".join(parts)
