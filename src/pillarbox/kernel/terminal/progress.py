"""How far a command is that reads or writes a long file: a bar on standard error, for people alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pillarbox.kernel.observability import log
from pillarbox.kernel.terminal.answers import counted


class Transfer:
    """A transfer of rows. `total` is in the measure of `reach`: octets of a file, or rows."""

    def __init__(self, bar: Progress | None, task: TaskID | None) -> None:
        self._bar = bar
        self._task = task
        self._began = time.monotonic()
        self.rows = 0

    def reach(self, position: int, rows: int) -> None:
        """Show that it has come so far, with so many rows."""
        self.rows = rows
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=position, rows=f"{rows:,}", rate=f"{self.rate:,}")

    @property
    def rate(self) -> int:
        """Rows in a second, so far."""
        return round(self.rows / max(time.monotonic() - self._began, 0.001))

    @property
    def summary(self) -> str:
        """`1,000 rows in 2 s (500 rows/s)`."""
        seconds = time.monotonic() - self._began
        return f"{counted(self.rows, 'row')} in {seconds:,.1f} s ({self.rate:,} rows/s)"


@contextmanager
def transfer(title: str, total: int | None) -> Iterator[Transfer]:
    """Yield a transfer that shows itself while it goes on, where standard error is a terminal."""
    if not sys.stderr.isatty():
        yield Transfer(None, None)
        return
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[rows]} rows", markup=False),
        TextColumn("{task.fields[rate]}/s", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar, log.erasing_line():
        yield Transfer(bar, bar.add_task(title, total=total, rows="0", rate="0"))
