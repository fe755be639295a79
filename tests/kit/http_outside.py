"""The outside world of the HTTP client: a resolver with given answers and servers on loopback."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_network

import pytest

from pillarbox.kernel.network.fetch_result import FAILURES, FetchError, HttpAnswer, HttpLimits
from pillarbox.kernel.network.outbound import Outbound

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LOOPBACK = [ip_network("127.0.0.1/32")]


class Zone:
    """A resolver with the answers it was given: one list, or several in turn."""

    def __init__(self, **hosts: list[str] | list[list[str]]) -> None:
        self.hosts = {name.replace("_", "."): answers for name, answers in hosts.items()}
        self.asked: list[str] = []

    async def addresses(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        answers = self.hosts.get(host, [])
        if answers and isinstance(answers[0], list):
            turn = min(self.asked.count(host), len(answers)) - 1
            return answers[turn]
        return answers  # type: ignore[return-value]


class Server:
    """What arrived at a listener on loopback."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[bytes] = []
        self.connections = 0

    @property
    def header_lines(self) -> list[str]:
        head = self.requests[-1].partition(b"\r\n\r\n")[0]
        return head.decode().lower().split("\r\n")[1:]


@asynccontextmanager
async def serving(
    *answers: bytes | Handler, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    """Yield a server that gives the answers in turn, the last one again and again."""
    seen = Server()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1])) if length else b""
            seen.requests.append(head + body)
            answer = answers[min(len(seen.requests), len(answers)) - 1]
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, host, port, ssl=tls, backlog=512)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def client(zone: Zone | None = None, **options: object) -> AsyncIterator[Outbound]:
    options.setdefault("allow", LOOPBACK)
    outbound = Outbound(zone or Zone(hook_example=["127.0.0.1"]), **options)  # type: ignore[arg-type]
    try:
        yield outbound
    finally:
        await outbound.close()


def answer(body: bytes = b"ok", *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def get(
    outbound: Outbound, url: str, headers: dict[str, str] | None = None, **limits: object
) -> HttpAnswer:
    found = HttpLimits(**({"max_bytes": 1000} | limits))  # type: ignore[arg-type]
    return await outbound.fetch("GET", url, found, headers=headers)


async def failure(outbound: Outbound, url: str, **limits: object) -> str:
    """Return the kind of the failure; its text tells nothing about where it happened (WH-08)."""
    with pytest.raises(FetchError) as failed:
        await get(outbound, url, **limits)  # type: ignore[arg-type]
    assert str(failed.value) == FAILURES[failed.value.kind]
    assert not re.search(r"[0-9:]", str(failed.value).replace("http or https", ""))
    assert failed.value.__cause__ is None
    return failed.value.kind
