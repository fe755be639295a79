"""The supervisor's side of the nursery, the process that forks the workers (`pillarbox.nursery`).

It is there from the start on and loads the program while the database starts. One that dies is started again;
the workers that it forked are children of the supervisor and live on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Sequence

from pillarbox.kernel import log
from pillarbox.kernel.process import adopt_orphans, ended
from pillarbox.kernel.setting_table import PREFIX

NAME = "pillarbox.nursery"
LONGEST_REQUEST = 4096
MOST_DESCRIPTORS = 200
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
STEADY_AFTER = 30.0
STDERR = 2

logger = log.get("supervisor")


class Nursery:
    """Workers are asked for here. Must be made on the main thread: the kernel ties children to it."""

    def __init__(self, factory: str) -> None:
        adopt_orphans()
        self._factory = factory
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_over = False
        self._pause = FIRST_PAUSE

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def ask(self, request: bytes, descriptors: Sequence[int]) -> None:
        """Have a worker forked that gets these descriptors, the first of them its channel. OSError where
        nobody can be asked; a worker that never comes to be lets its channel end."""
        channel = self.begin()
        socket.send_fds(channel, [request], descriptors)

    def begin(self) -> socket.socket:
        """Start the process unless it lives; where it listens."""
        if self._is_over:
            raise BrokenPipeError("there are no more workers")
        if self._channel is None or self._process is None or self._process.poll() is not None:
            self._channel = self._start()
        return self._channel

    def _start(self) -> socket.socket:
        if self._channel is not None:
            self._channel.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", NAME, str(theirs.fileno()), self._factory],
                pass_fds=(theirs.fileno(),),
                env=environment(),
                stdin=subprocess.DEVNULL,
                # Standard output carries the ready line and nothing else.
                stdout=STDERR,
                # A Ctrl-C on the terminal is for the supervisor alone.
                start_new_session=True,
            )
        ours.setblocking(False)
        self._watching = asyncio.get_running_loop().create_task(self._watch(self._process))
        return ours

    async def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Start another one when this one died."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        status = await ended(process)
        if self._is_over:
            return
        lived = loop.time() - started
        logger.error("nursery.died", nursery=process.pid, status=status, seconds=round(lived, 1))
        self._pause = FIRST_PAUSE if lived >= STEADY_AFTER else min(self._pause * 2, LONGEST_PAUSE)
        await asyncio.sleep(self._pause)
        with contextlib.suppress(OSError):
            self.begin()

    def kill(self) -> None:
        """No more workers; one that was asked for and is not there yet never comes."""
        self._is_over = True
        if self._channel is not None:
            self._channel.close()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    async def end(self) -> None:
        """The same, and return when the process is gone."""
        self.kill()
        if self._process is not None:
            await ended(self._process)
        if self._watching is not None:
            self._watching.cancel()


def environment() -> dict[str, str]:
    """Ours without the settings: workers are told them, and whoever may look cannot read them there."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
