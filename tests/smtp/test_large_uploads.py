"""What clients send to our listeners and read from them arrives whole: each size, kind of TLS, event loop.

The clients are `smtplib` and `http.client`, blocking, in threads of their own.
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import os
import smtplib
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from kit.blocking_peer import TLS_KINDS, TlsKind
from kit.smtp_listener import RecordingHandler, bound, on_each_loop, running_listener, trusting
from pillarbox.app import SETTINGS
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.process.runtime import Receive, Runtime, Scope, Send
from pillarbox.kernel.security.certificates import self_made
from pillarbox.kernel.settings.settings import read_settings
from pillarbox.worker import HttpServer, WorkerConfig

pytestmark = pytest.mark.sweep

SIZES = [1_000, 200_000, 2_000_000, 40_000_000]
LINE = b"." + b"0123456789abcdef" * 4 + b"\r\n"
PIECE = 250_000


def smtp_client(port: int, tls: TlsKind, folder: Path) -> smtplib.SMTP:
    if tls == "implicit":
        return smtplib.SMTP_SSL("localhost", port, timeout=60, context=trusting(folder))
    client = smtplib.SMTP("localhost", port, timeout=60)
    if tls == "starttls":
        client.starttls(context=trusting(folder))
    return client


async def upload(tls: TlsKind, text: bytes, folder: Path, *, octets: int | None = None) -> None:
    """Send a text of a message, at once or in pieces of `octets`, and compare what the handler got."""
    handler = RecordingHandler()
    options = {"tls": None if tls == "clear" else folder, "implicit_tls": tls == "implicit"}
    async with running_listener(handler, most_octets=50_000_000, **options) as listener:

        def send() -> int:
            with smtp_client(listener.port, tls, folder) as client:
                for line in ("EHLO x.example", "MAIL FROM:<ada@quay.example>", "RCPT TO:<bob@berth.example>"):
                    assert client.docmd(line)[0] == 250
                if octets is None:
                    return client.data(text)[0]
                assert client.docmd("DATA")[0] == 354
                sock = client.sock
                assert sock is not None
                wire = text.replace(b"\r\n.", b"\r\n..") + b".\r\n"
                for start in range(0, len(wire), octets):
                    sock.sendall(wire[start : start + octets])
                return client.getreply()[0]

        assert await asyncio.to_thread(send) == 250
    [message] = handler.messages
    assert (len(message.text), digest(message.text)) == (len(text), digest(text))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop
async def test_a_message_of_each_size_is_received(tls: TlsKind, size: int, tmp_path: Path) -> None:
    await upload(tls, b"Subject: size\r\n\r\n" + LINE * (size // len(LINE)), tmp_path)


@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop
async def test_a_message_that_comes_octet_by_octet_is_received(tls: TlsKind, tmp_path: Path) -> None:
    await upload(tls, b"Subject: slow\r\n\r\n" + LINE * 100, tmp_path, octets=1)


# HTTP -------------------------------------------------------------------------------------------------


class Echo:
    """Answers a body with its digest, and `GET /N` with N octets in pieces."""

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":
            await self._download(int(scope["path"][1:]), send)
            return
        body = hashlib.sha256()
        more = True
        while more:
            event = await receive()
            body.update(event.get("body", b""))
            more = event.get("more_body", False)
        answer = body.hexdigest().encode()
        headers = [(b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _download(self, size: int, send: Send) -> None:
        headers = [(b"content-length", b"%d" % size)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for start in range(0, size, PIECE):
            part = b"a" * min(PIECE, size - start)
            await send({"type": "http.response.body", "body": part, "more_body": start + PIECE < size})

    async def start(self) -> None: ...

    def closing(self) -> None: ...

    async def stop(self, grace: float) -> None: ...


@asynccontextmanager
async def http_server(folder: Path, *, tls: bool) -> AsyncIterator[int]:
    """A worker's HTTP server, as the program configures it, and its port."""
    given = {"data": str(folder)}
    if tls:
        path = str(self_made(folder, "localhost", SystemClock().now()))
        given |= {"tls_cert": path, "tls_key": path}
    listening = bound()
    port = int(listening.getsockname()[1])
    memory = os.memfd_create("test")
    runtime = Runtime(
        process_id=uuid4(),
        index=0,
        count=1,
        shared_memory=memory,
        capture_token="",
        listeners={"http": listening.detach()},
    )
    server = HttpServer(WorkerConfig(read_settings(SETTINGS, given, {}), runtime, ""), Echo())
    await server.open()
    try:
        yield port
    finally:
        await server.close()
        os.close(memory)


def connected(port: int, tls: bool, folder: Path, window: int | None = None) -> http.client.HTTPConnection:
    client = http.client.HTTPConnection("localhost", port, timeout=60)
    sock = socket.socket()
    if window is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    sock.settimeout(60)
    sock.connect(("127.0.0.1", port))
    client.sock = trusting(folder).wrap_socket(sock, server_hostname="localhost") if tls else sock
    return client


each_kind = pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])


@pytest.mark.parametrize("size", SIZES)
@each_kind
@on_each_loop
async def test_a_request_and_an_answer_of_each_size_pass(tls: bool, size: int, tmp_path: Path) -> None:
    def exchange(port: int) -> None:
        client = connected(port, tls, tmp_path)
        body = b"{" * size
        for _ in range(2):
            client.request("POST", "/", body)
            assert client.getresponse().read().decode() == digest(body)
            client.request("GET", f"/{size}")
            assert len(client.getresponse().read()) == size
        client.close()

    async with http_server(tmp_path, tls=tls) as port:
        await asyncio.to_thread(exchange, port)


@pytest.mark.parametrize(("size", "octets", "pause"), [(600_000, 4_096, 0.0005), (8_000, 1, 0.0)])
@each_kind
@on_each_loop
async def test_a_client_may_read_slowly(
    tls: bool, size: int, octets: int, pause: float, tmp_path: Path
) -> None:
    def download(port: int) -> int:
        client = connected(port, tls, tmp_path, window=1024)
        client.request("GET", f"/{size}")
        answer, count = client.getresponse(), 0
        while part := answer.read(octets):
            count += len(part)
            time.sleep(pause)
        client.close()
        return count

    async with http_server(tmp_path, tls=tls) as port:
        assert await asyncio.to_thread(download, port) == size


@each_kind
@on_each_loop
async def test_a_client_that_stops_reading_holds_up_nobody(tls: bool, tmp_path: Path) -> None:
    """Its answer waits in the client's window, and others are answered meanwhile."""

    def ask(port: int) -> bytes:
        client = connected(port, tls, tmp_path)
        client.request("GET", "/5")
        return client.getresponse().read()

    def stopped(port: int) -> http.client.HTTPConnection:
        client = connected(port, tls, tmp_path, window=1024)
        client.request("GET", "/40000000")
        assert client.getresponse().read(10) == b"a" * 10
        return client

    async with http_server(tmp_path, tls=tls) as port:
        silent = await asyncio.to_thread(stopped, port)
        for _ in range(3):
            assert await asyncio.to_thread(ask, port) == b"aaaaa"
        silent.close()


def test_the_certificates_of_these_tests_are_verified(tmp_path: Path) -> None:
    """A client with the system's authorities refuses the listener: what passed above was verified."""

    async def refused() -> None:
        async with http_server(tmp_path, tls=True) as port:
            with pytest.raises(ssl.SSLCertVerificationError):
                await asyncio.open_connection(
                    "127.0.0.1", port, ssl=ssl.create_default_context(), server_hostname="localhost"
                )

    asyncio.run(refused())
