"""The supervisor's side of the fork server, the process that forks the workers (`pillarbox.fork_server`).

The supervisor starts it first, and it loads the program while the database starts. If it dies, it is started
again; the workers that it forked are children of the supervisor and keep running.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
from collections.abc import Sequence

from pillarbox.kernel.observability import log
from pillarbox.kernel.process.children import ended
from pillarbox.kernel.process.fork_server_channel import ForkServerProcess, started
from pillarbox.kernel.process.parent import adopt_orphans

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
STEADY_AFTER = 30.0

logger = log.get("supervisor")


class ForkServer:
    """Starts the fork server and sends it requests for workers. Must be made on the main thread: the kernel
    ends children together with the thread that started them.

    `first` is a process that was started before.
    """

    def __init__(self, factory: str, first: ForkServerProcess | None = None) -> None:
        adopt_orphans()
        self._factory = factory
        self._held: ForkServerProcess | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_over = False
        self._pause = FIRST_PAUSE
        if first is not None:
            self._hold(first)

    @property
    def pid(self) -> int | None:
        return self._held.process.pid if self._held else None

    def ask(self, request: bytes, descriptors: Sequence[int]) -> None:
        """Request a worker that gets these descriptors, the first of them its channel. OSError where no fork
        server runs; if the fork fails, the channel ends."""
        self.begin()
        assert self._held is not None
        socket.send_fds(self._held.channel, [request], descriptors)

    def begin(self) -> None:
        """Start the process unless it is running."""
        if self._is_over:
            raise BrokenPipeError("there are no more workers")
        if self._held is None or self._held.process.poll() is not None:
            self._hold(started(self._factory))

    def _hold(self, held: ForkServerProcess) -> None:
        if self._held is not None:
            self._held.channel.close()
        self._held = held
        self._watching = asyncio.get_running_loop().create_task(self._watch(held.process))

    async def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Start another one when this one died."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        status = await ended(process)
        if self._is_over:
            return
        lived = loop.time() - started
        logger.error("fork_server.died", fork_server=process.pid, status=status, seconds=round(lived, 1))
        self._pause = FIRST_PAUSE if lived >= STEADY_AFTER else min(self._pause * 2, LONGEST_PAUSE)
        await asyncio.sleep(self._pause)
        with contextlib.suppress(OSError):
            self.begin()

    def kill(self) -> None:
        """Start no more workers; requests that are still open are dropped."""
        self._is_over = True
        if self._held is not None:
            self._held.channel.close()
            if self._held.process.poll() is None:
                self._held.process.kill()

    async def end(self) -> None:
        """Kill the process, and return when it has ended."""
        self.kill()
        if self._held is not None:
            await ended(self._held.process)
        if self._watching is not None:
            self._watching.cancel()
