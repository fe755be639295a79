"""uvicorn as a world runs it: it ends when it is told.

uvicorn looks every tenth of a second whether it shall end, and waits another tenth for its connections. With
a world for each of a thousand tests these are minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from pillarbox.kernel.http.protocol import server_config

SOON = 0.001
TICK = 1.0


class EndingServer(uvicorn.Server):
    """Serves until `end`; signals stay the test's."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    def end(self) -> None:
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK):
                    await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down as uvicorn does: nobody new, then whoever is there may finish."""
        for listener in (*self.servers, *(sockets or [])):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self.server_state.connections or self.server_state.tasks:
                    await asyncio.sleep(SOON)
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()
        await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def served(asgi: object, listener: socket.socket) -> tuple[EndingServer, asyncio.Task[None]]:
    """Return a server that accepts connections, and the task that runs it."""
    server = EndingServer(server_config(asgi))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(SOON)
    return server, serving
