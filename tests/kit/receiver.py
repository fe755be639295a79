"""A receiver of webhooks on loopback: keeps connections, notes what arrives, answers as the test says.

async with receiver() as at:
    at.answers(status(500), status(200))     # in turn, the last one again and again
    ...
    await at.wait_for(2)
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kit.load import Line
from kit.process import KEY

WEBHOOKS = {"webhooks_allow_http": "true", "allow_private": "127.0.0.0/8"}
"""Settings with which a receiver on loopback may be called."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request. `headers` by name in lower case; `lines` as they came; `at` is of the monotonic clock."""

    target: str
    lines: list[str]
    headers: dict[str, str]
    body: bytes
    at: float
    connection: int
    writer: asyncio.StreamWriter = field(repr=False)

    @property
    def event(self) -> str:
        return self.headers["svix-id"]


Answer = bytes | Callable[[Arrival], Awaitable[bytes | None]]
"""Bytes, or what gives them; None closes the connection."""


def status(code: int, body: bytes = b"ok", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {code} Said", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Receiver:
    """What arrived, and what is answered."""

    def __init__(self) -> None:
        self.url = ""
        self.port = 0
        self.arrivals: list[Arrival] = []
        self.connections = 0
        self._answers: list[Answer] = [status(200)]
        self._turn = 0
        self._came = asyncio.Condition()

    def answers(self, *answers: Answer) -> None:
        self._answers, self._turn = list(answers), 0

    async def wait_for(self, count: int, seconds: float = 15.0) -> list[Arrival]:
        """Return when that many requests have come."""
        async with asyncio.timeout(seconds), self._came:
            await self._came.wait_for(lambda: len(self.arrivals) >= count)
        return self.arrivals

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while (arrival := await self._read(reader, writer, number)) is not None:
                if (answer := await self._said(arrival)) is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _read(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> Arrival | None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        arrival = Arrival(
            target=first,
            lines=lines,
            headers=headers,
            body=body,
            at=time.monotonic(),
            connection=number,
            writer=writer,
        )
        self.arrivals.append(arrival)
        async with self._came:
            self._came.notify_all()
        return arrival

    async def _said(self, arrival: Arrival) -> bytes | None:
        answer = self._answers[min(self._turn, len(self._answers) - 1)]
        self._turn += 1
        return answer if isinstance(answer, bytes) else await answer(arrival)


@asynccontextmanager
async def receiver(*, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator[Receiver]:
    """Yield a receiver for as long as the block runs."""
    made = Receiver()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(made.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, host, 0, ssl=tls, backlog=1024)
    made.port = server.sockets[0].getsockname()[1]
    made.url = f"{'https' if tls else 'http'}://{host}:{made.port}/in"
    try:
        yield made
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def hangs(arrival: Arrival) -> bytes | None:
    """Say nothing until the other side gives up."""
    await arrival.writer.wait_closed()
    return None


async def resets(arrival: Arrival) -> bytes | None:
    """End the connection with a reset."""
    arrival.writer.transport.abort()
    return None


async def subscribed(at: tuple[str, int], endpoint: str, *events: str) -> None:
    """Make a webhook of the first team over the API."""
    line = Line(*at, KEY)
    code, answer = await line.ask("POST", "/webhooks", {"endpoint": endpoint, "events": list(events)})
    line.hang_up()
    assert code == 201, answer
