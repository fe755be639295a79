"""Settings of the test session that make a run cheap without making the tests weaker.

- Folders for temporary files are in memory where there is plenty of it: a database is copied for every test,
  and writing the copies to a disk costs ten times their use.
- Modules are compiled once and not by every process that a test starts, whatever the environment says.
- Failures that a test provokes are logged without all variables of all frames.
- The log that a command configures in this process is not kept by loggers, so a test can capture it later.
- A package that httpcore asks for with each request is known to be missing, where it is.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import structlog

MEMORY = Path("/dev/shm")
PLENTY = 6 * 1024**3
"""What a run may need at most, and some more: a smaller memory is left alone."""


def prepare() -> None:
    """Set this process, and by its environment all that it starts."""
    if "TMPDIR" not in os.environ and has_plenty(MEMORY):
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None
    if (place := bytecode()) is not None:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(place)
        sys.dont_write_bytecode = False
    if find_spec("sniffio") is None:
        # An import of what is known to be missing fails at once; else all folders are gone through.
        sys.modules["sniffio"] = None  # type: ignore[assignment]
    structlog.configure = _configure_uncached
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ],
        # Not to where a test looks for what a command prints.
        logger_factory=lambda *args: structlog.PrintLogger(sys.__stderr__),
    )


_configure = structlog.configure


def _configure_uncached(**settings: Any) -> None:
    """Set up the log without a cache: commands in this process configure it anew, and a logger that had
    kept theirs would hide its lines from `capture_logs` for the rest of the session."""
    _configure(**{**settings, "cache_logger_on_first_use": False})


def has_plenty(folder: Path) -> bool:
    """Return whether this is a folder in memory that the run cannot fill."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    return shutil.disk_usage(folder).free > PLENTY and available_memory() > PLENTY


def available_memory() -> int:
    """Return what the kernel could give away without swapping (proc(5), MemAvailable); 0 where it does
    not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)


def bytecode() -> Path | None:
    """Return where compiled modules are kept: beside the packages, or nowhere."""
    place = Path(sys.prefix) / "caches" / "bytecode"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return place if os.access(place, os.W_OK | os.X_OK) else None
