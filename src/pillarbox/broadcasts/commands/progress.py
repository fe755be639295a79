"""A line that shows how far a broadcast is, as long as it is being sent; on standard error, for people
alone."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from pillarbox.broadcasts import copy_counts_queries, overview_queries
from pillarbox.broadcasts.copy_counts_queries import CopyCounts
from pillarbox.broadcasts.overview_queries import BroadcastOverview
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import span

LOOK_SECONDS = 1.0


class Speed:
    """Copies a second since somebody began to look, and what is left at that speed."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._first: int | None = None
        self.rate = 0.0

    def reach(self, done: int) -> None:
        if self._first is None:
            self._first = done
        self.rate = (done - self._first) / max(time.monotonic() - self._began, 0.001)

    def left(self, copies: int) -> str:
        return span(timedelta(seconds=copies / self.rate)) if self.rate > 0 else "-"


async def follow(db: TeamDb, broadcast_id: UUID) -> BroadcastOverview:
    """Return the broadcast when it is over, paused, or deleted meanwhile, and show it until then."""
    speed = Speed()
    found = await overview_queries.one(db, broadcast_id)
    assert found is not None, "the caller has looked"
    with _line() as shown:
        while found.condition in ("queued", "scheduled"):
            if found.queued_at is not None:
                so_far = await copy_counts_queries.since_start(db, broadcast_id, found.queued_at)
                speed.reach(_done(so_far))
                shown.show(found, so_far, speed)
            await asyncio.sleep(LOOK_SECONDS)
            after = await overview_queries.one(db, broadcast_id)
            if after is None:
                break
            found = after
    return found


def _done(so_far: CopyCounts) -> int:
    """Return for how many copies a first attempt is over."""
    return so_far.sent + so_far.suppressed + so_far.failed


class _Line:
    def __init__(self, bar: Progress | None, task: TaskID | None) -> None:
        self._bar = bar
        self._task = task

    def show(self, broadcast: BroadcastOverview, so_far: CopyCounts, speed: Speed) -> None:
        if self._bar is None or self._task is None:
            return
        total = broadcast.recipients
        left = "-" if total is None else speed.left(max(0, total - _done(so_far)))
        self._bar.update(
            self._task,
            total=total,
            completed=_done(so_far),
            figures=(
                f"{so_far.sent:,} sent, {so_far.delivered:,} delivered, {so_far.bounced:,} bounced, "
                f"{speed.rate:,.0f}/s, {left} left"
            ),
        )


@contextmanager
def _line() -> Iterator[_Line]:
    if not sys.stderr.isatty():
        yield _Line(None, None)
        return
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    columns = (BarColumn(), TextColumn("{task.fields[figures]}", markup=False))
    with Progress(*columns, console=console, transient=True) as bar:
        yield _Line(bar, bar.add_task("broadcast", total=None, figures=""))
