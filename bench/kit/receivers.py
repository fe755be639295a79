"""Where webhooks go to: an HTTP receiver in a process of its own that counts, or notes when each came.

`python -m bench.kit.receivers PORT FILE` serves. `/in` answers 204 at once, `/hang` never. When it ends by
SIGTERM it has written to the file: how many requests came, of how many events, and the wall time of the
first byte of each event's first request.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from bench.kit import tools

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
ID = b"\r\nsvix-id: "
LENGTH = b"\r\ncontent-length: "


class Counting(asyncio.Protocol):
    """One connection; requests of one family of headers that our dispatcher sends."""

    requests = 0
    hung = 0
    first: dict[str, float]

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.WriteTransport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[: end + 2]
            lower = head.lower()
            length = int(_value(lower, LENGTH) or b"0")
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            self._take(head, lower, now)

    def _take(self, head: bytes, lower: bytes, now: float) -> None:
        if head.startswith(b"POST /hang"):
            Counting.hung += 1
            return
        Counting.requests += 1
        at = lower.find(ID) + len(ID)
        self.first.setdefault(head[at : head.find(b"\r\n", at)].decode(), now)
        self._transport.write(ANSWER)


def _value(lower: bytes, name: bytes) -> bytes:
    at = lower.find(name)
    return lower[at + len(name) : lower.find(b"\r\n", at + len(name))] if at >= 0 else b""


async def serve(port: int, file: Path) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    Counting.first = {}
    server = await loop.create_server(Counting, "127.0.0.1", port, backlog=4096)
    await stop.wait()
    server.close()
    said = {"requests": Counting.requests, "hung": Counting.hung, "first": Counting.first}
    file.write_text(json.dumps(said))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a receiver saw."""

    requests: int
    hung: int
    first: dict[str, float]


class HttpReceiver:
    """A running receiver."""

    def __init__(self, port: int, pid: int, file: Path) -> None:
        self.port = port
        self.pid = pid
        self._file = file

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/in"

    @property
    def hanging(self) -> str:
        return f"http://127.0.0.1:{self.port}/hang"

    def seen(self) -> Seen:
        """Once it has ended."""
        return Seen(**json.loads(self._file.read_text()))


@contextmanager
def http_receiver(folder: Path) -> Iterator[HttpReceiver]:
    """A receiver for as long as the block runs."""
    port = tools.free_port()
    file = folder / f"receiver.{time.monotonic_ns()}.json"
    command = [sys.executable, "-m", "bench.kit.receivers", str(port), str(file)]
    with tools.child(command, folder / "receiver.log") as process:
        tools.wait_for(lambda: tools.answers(port) or process.poll() is not None, "the receiver")
        yield HttpReceiver(port, process.pid, file)


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
