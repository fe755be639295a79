"""Many connections at once are accepted in a few turns of a busy loop, by each kind of listener."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
import uvloop

from kit.smtp_listener import RecordingHandler, bound
from pillarbox.app import SETTINGS
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.network.listeners import ACCEPTED_AT_ONCE, HTTP, LMTP, SMTP, submission_names
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.process.runtime import Receive, Runtime, Scope, Send
from pillarbox.kernel.security.certificates import Certificate, self_made
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.settings.kinds import HostPort, SubmissionListener
from pillarbox.kernel.settings.settings import read_settings
from pillarbox.mail.smtp.listener import ListenerOptions
from pillarbox.smtp.clients import Allowance, Clients
from pillarbox.smtp.listeners import SmtpListeners
from pillarbox.worker import HttpServer, WorkerConfig

CONNECTIONS = 8 * ACCEPTED_AT_ONCE
SUBMISSION = SubmissionListener(HostPort("127.0.0.1", 0), True)


class Nothing:
    """An application that is never asked."""

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def start(self) -> None: ...

    def closing(self) -> None: ...

    async def stop(self, grace: float) -> None: ...


async def turns(port: int, accepted: Callable[[], int]) -> int:
    """How many turns of the loop it takes to accept them all; they are connected before the first."""
    with ExitStack() as opened:
        for _ in range(CONNECTIONS):
            opened.enter_context(socket.create_connection(("127.0.0.1", port), 5))
        needed = 0
        while accepted() < CONNECTIONS and needed < 4 * CONNECTIONS:
            await asyncio.sleep(0)
            needed += 1
        return needed


async def of_http(folder: Path) -> int:
    http_server, memory = bound(), os.memfd_create("test")
    port = http_server.getsockname()[1]
    runtime = Runtime(
        process_id=uuid4(),
        index=0,
        count=1,
        shared_memory=memory,
        capture_token="",
        listeners={HTTP: http_server.detach()},
    )
    server = HttpServer(
        WorkerConfig(read_settings(SETTINGS, {"data": str(folder)}, {}), runtime, ""), Nothing()
    )
    await server.open()
    try:
        return await turns(port, lambda: len(server._server.server_state.connections))
    finally:
        await server.close()
        os.close(memory)


async def of_smtp(name: str, folder: Path) -> int:
    http_server, clock = bound(), SystemClock()
    port = http_server.getsockname()[1]
    path = self_made(folder, "localhost", clock.now())
    memory = shared_memory.create()
    clients, neighbours = [
        Clients(Windows(memory, clock), clock, Allowance(1000, None, None)) for _ in range(2)
    ]
    listeners = SmtpListeners(
        sockets={name: http_server.detach()},
        submission=RecordingHandler(),
        inbound=None,
        local=RecordingHandler(),
        manner=ListenerOptions("mx.pillar.example", 1000),
        asked=(SUBMISSION,),
        certificate=Certificate(path, path, clock),
        clients=clients,
        local_clients=neighbours,
    )
    await listeners.open()
    try:
        return await turns(port, lambda: clients.total + neighbours.total)
    finally:
        await listeners.stop(0)
        os.close(memory)


SMTPS = submission_names([SUBMISSION])[0]
LISTENERS: dict[str, Callable[[Path], Awaitable[int]]] = {
    HTTP: of_http,
    SMTP: lambda folder: of_smtp(SMTP, folder),
    SMTPS: lambda folder: of_smtp(SMTPS, folder),
    LMTP: lambda folder: of_smtp(LMTP, folder),
}


@pytest.mark.parametrize("name", LISTENERS)
def test_connections_that_come_together_are_accepted_together(name: str, tmp_path: Path) -> None:
    """With one descriptor each takes a turn of its own."""

    async def needed() -> int:
        return await LISTENERS[name](tmp_path)

    assert uvloop.run(needed()) < CONNECTIONS // 2
