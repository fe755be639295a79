"""What work costs here and at another commit, both on this machine in the same minute: `--against REF`.

The commit gets a worktree in the temporary folder, an environment with the Python that runs this, and
`bench.turns`. Processor time of Pillarbox and of PostgreSQL together decides.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import turns
from bench.kit.machine import ROOT
from bench.kit.results import Report
from bench.nightly.judging import is_dearer, seen


def compare(report: Report, ref: str, loads: Sequence[str], count: int) -> tuple[list[str], list[str]]:
    """Compare each load; returns those that are dearer here by more than is allowed, and those of which this
    cannot be told."""
    found, untold = [], []
    with worktree(report.folder / "other", ref) as checkout:
        python = turns.bootstrapped(checkout, os.path.realpath(sys.executable))
        for load in loads:
            ratio = seen(turns.compare(report, load, python, count))
            if is_dearer(ratio):
                found.append(f"{load}: {ratio.median:.3f} × of {ref}, {ratio.low:.3f} to {ratio.high:.3f}")
            elif ratio.is_noisy:
                untold.append(f"{load}: the noise of this run is {ratio.noise:.0%}, more than 5 %")
    return found, untold


@contextmanager
def worktree(folder: Path, ref: str) -> Iterator[Path]:
    """The tree of a commit, for as long as the block runs."""
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), ref], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)
