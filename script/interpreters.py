"""Which Python the program runs on: the fastest of those on the PATH (docs/decisions/0004).

Interpreters differ by a third and more: some are built without the compiler's optimisations. So each that is
new enough runs the same loop, and the fastest is taken; one that is named first keeps its place unless
another is clearly faster. `PYTHON` names one, and then no other is looked at.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

NAMES = ("python3.13", "python3.12", "python3.11", "python3", "python")
CLEARLY_FASTER = 0.95
"""A smaller difference is noise."""
SECONDS = 10
"""For an interpreter to answer; one that does not is passed over."""

QUESTION = """
import os, sys, time, venv
if sys.version_info < (3, 11):
    sys.exit(1)
def work():
    seen = {}
    for number in range(15000):
        text = str(number)
        seen[text[-3:]] = seen.get(text[-3:], 0) + len(text)
best = 9.0
for _ in range(10):
    begin = time.process_time()
    work()
    best = min(best, time.process_time() - begin)
print(best, os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
"""
"""Some 50 ms: the fastest of ten rounds, so that what runs beside it does not count."""


class Interpreter(NamedTuple):
    """A Python and the processor seconds that a round of the loop takes it."""

    path: str
    seconds: float


def fastest(environment: Mapping[str, str]) -> Interpreter | None:
    """The one to run on; None where none is new enough."""
    best: Interpreter | None = None
    seen: set[str] = set()
    for path in candidates(environment):
        found = measured(path)
        if found is None or found.path in seen:
            continue
        seen.add(found.path)
        if best is None or found.seconds < best.seconds * CLEARLY_FASTER:
            best = found
    return best


def candidates(environment: Mapping[str, str]) -> list[str]:
    """Where interpreters may be, in the order in which they are preferred; the same file once."""
    if environment.get("PYTHON"):
        return [environment["PYTHON"]]
    folders = [folder for folder in environment.get("PATH", os.defpath).split(os.pathsep) if folder]
    once: dict[Path, str] = {}
    for path in (Path(folder, name) for name in NAMES for folder in folders):
        if os.access(path, os.X_OK):
            once.setdefault(path.resolve(), str(path))
    return list(once.values())


def measured(path: str) -> Interpreter | None:
    """How fast it is; None where it does not run, or is too old."""
    try:
        told = subprocess.run(
            [path, "-I", "-c", QUESTION],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    seconds, _, real = told.stdout.strip().partition(" ")
    return Interpreter(real, float(seconds)) if told.returncode == 0 and real else None
