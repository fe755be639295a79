"""Starts that are refused, and commands, as real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kit.process import PATIENCE, Served, environment


def refused(data: Path, **settings: str) -> str:
    """Return the one sentence with which a start ends."""
    running = Served(data, {"processes": "1", **settings})
    try:
        assert running.process.wait(PATIENCE) in (1, 2)
        sentence = running.log.wait_for_end()[-1]
    finally:
        running.end()
    assert sentence.startswith("pillarbox: ")
    assert not [line for line in running.log.all if line.startswith("Traceback")]
    return sentence


def command(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `pillarbox WORDS` in a folder where nothing is."""
    return subprocess.run(
        [sys.executable, "-m", "pillarbox", *words],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE,
        cwd=folder,
    )
