"""A PostgreSQL of the test's own that can be made to stand still: all of its processes, or none."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from pillarbox.kernel.postgres.embedded import EmbeddedPostgres, processes_in
from pillarbox.kernel.postgres.migrations import migrate_url


class Freezable:
    """A server with a migrated database."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self.url = server.url()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Send SIGSTOP to every process until the block ends; the postmaster first, so that no new
        ones come."""
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def freeze(self) -> None:
        for _ in range(2):
            for pid in sorted(processes_in(self._server.folder)):
                _signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in processes_in(self._server.folder):
            _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    """Signal a process; sessions and workers of the server end whenever they are done."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@asynccontextmanager
async def freezable(folder: Path) -> AsyncIterator[Freezable]:
    server = EmbeddedPostgres(folder / "own-postgres", durable=False)
    await server.start()
    try:
        await migrate_url(server.url())
        made = Freezable(server)
        yield made
        made.thaw()
    finally:
        await server.stop()
