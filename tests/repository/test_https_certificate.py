"""HTTPS shows the certificate that is in the files now, without a restart (TLS-07)."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from kit.smtp_listener import bound, on_each_loop
from pillarbox.app import SETTINGS
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.process.runtime import Receive, Runtime, Scope, Send
from pillarbox.kernel.security.certificates import self_made
from pillarbox.kernel.settings.settings import read_settings
from pillarbox.worker import HttpServer, WorkerConfig

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Greeter:
    """The least of an application."""

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"hi"})

    async def start(self) -> None: ...

    def closing(self) -> None: ...

    async def stop(self, grace: float) -> None: ...


@asynccontextmanager
async def https(folder: Path) -> AsyncIterator[tuple[HttpServer, int]]:
    """A worker's HTTP server with a certificate in this folder, and its port."""
    path = str(self_made(folder, "localhost", SystemClock().now()))
    http_server = bound()
    port = int(http_server.getsockname()[1])
    settings = read_settings(SETTINGS, {"data": str(folder), "tls_cert": path, "tls_key": path}, {})
    memory = os.memfd_create("test")
    server = HttpServer(
        WorkerConfig(
            settings,
            Runtime(
                process_id=uuid4(),
                index=0,
                count=1,
                shared_memory=memory,
                capture_token="",
                listeners={"http": http_server.detach()},
            ),
            "",
        ),
        Greeter(),
    )
    await server.open()
    try:
        yield server, port
    finally:
        await server.close()
        os.close(memory)


class Visitor:
    """A connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def at(cls, port: int, folder: Path, *, name: str | None = "localhost") -> Visitor:
        context = ssl.create_default_context(cafile=str(folder / "tls" / "self-made.pem"))
        if name is None:
            context.check_hostname = False
        opened = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name or "")
        return cls(*opened)

    @property
    def serial(self) -> str:
        return str(self._writer.get_extra_info("peercert")["serialNumber"])

    @property
    def version(self) -> str:
        return str(self._writer.get_extra_info("ssl_object").version())

    async def asks(self) -> bytes:
        self._writer.write(REQUEST)
        head = await self._reader.readuntil(b"\r\n\r\n")
        return head.partition(b"\r\n")[0] + b" " + await self._reader.readexactly(2)

    def leave(self) -> None:
        self._writer.transport.abort()


@on_each_loop
async def test_the_next_handshake_sees_a_new_certificate_and_connections_go_on(tmp_path: Path) -> None:
    async with https(tmp_path) as (server, port):
        before = await Visitor.at(port, tmp_path)
        assert await before.asks() == b"HTTP/1.1 200 OK hi"
        (tmp_path / "tls" / "self-made.pem").unlink()
        self_made(tmp_path, "localhost", SystemClock().now())
        assert server.certificate is not None
        assert server.certificate.refresh()
        for name in ("localhost", None):
            after = await Visitor.at(port, tmp_path, name=name)
            assert await after.asks() == b"HTTP/1.1 200 OK hi"
            assert after.serial != before.serial
            assert after.version in ("TLSv1.2", "TLSv1.3")
            after.leave()
        assert await before.asks() == b"HTTP/1.1 200 OK hi"
        before.leave()
