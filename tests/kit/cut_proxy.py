"""A proxy in front of PostgreSQL that ends each conversation after so many bytes."""

from __future__ import annotations

import asyncio
import socket
import struct
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

NAME = ".s.PGSQL.5432"
ASKED, ANSWERED = "asked", "answered"
FIN, RST, SILENT = "fin", "rst", "silent"
NOW = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Cut:
    """After `at` bytes of one direction: the end (FIN), a reset (RST, only TCP knows it), or nothing more."""

    direction: str
    at: int
    how: str


class CutProxy:
    """Forwards conversations over TCP and a Unix socket. The next one is cut as `cut` says, others not."""

    def __init__(self, url: str, folder: Path) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self.far = f"{query['host'][0]}/{NAME}"
        self._near = folder
        self._name, self._user = parts.path.lstrip("/"), query["user"][0]
        self._port = 0
        self._servers: list[asyncio.Server] = []
        self.running: set[Conversation] = set()
        self.cut: Cut | None = None
        self.sizes = {ASKED: 0, ANSWERED: 0}
        """Of the conversation that began last."""

    @property
    def by_unix(self) -> str:
        return f"postgresql:///{self._name}?host={quote(str(self._near))}&user={self._user}"

    @property
    def by_tcp(self) -> str:
        return f"postgresql://{self._user}@127.0.0.1:{self._port}/{self._name}"

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._servers = [
            await loop.create_unix_server(self._began, str(self._near / NAME)),
            await loop.create_server(self._began, "127.0.0.1", 0),
        ]
        self._port = self._servers[1].sockets[0].getsockname()[1]

    def _began(self) -> End:
        cut, self.cut = self.cut, None
        self.sizes = {ASKED: 0, ANSWERED: 0}
        return Conversation(self, cut).near

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        while self.running:
            for conversation in tuple(self.running):
                conversation.over()
            await asyncio.sleep(0.001)


class Conversation:
    """A client and PostgreSQL."""

    def __init__(self, proxy: CutProxy, cut: Cut | None) -> None:
        self._proxy = proxy
        self._cut = cut
        self._sizes = proxy.sizes
        self._is_cut = False
        self._early = b""
        self.near, self.far = End(self, ASKED), End(self, ANSWERED)
        proxy.running.add(self)

    async def connect(self) -> None:
        await asyncio.get_running_loop().create_unix_connection(lambda: self.far, self._proxy.far)
        if self._early:
            self.heard(ASKED, self._early)
        if self.near.transport is not None:
            self.near.transport.resume_reading()

    def heard(self, direction: str, data: bytes) -> None:
        if self._is_cut:
            return
        if direction == ASKED and self.far.transport is None:
            # Before 3.11.3 a transport that is paused when it is made reads nevertheless.
            self._early += data
            return
        cut = self._cut if self._cut is not None and self._cut.direction == direction else None
        left = len(data) + 1 if cut is None else cut.at - self._sizes[direction]
        self._sizes[direction] += len(data)
        to = self.far if direction == ASKED else self.near
        if to.transport is not None:
            to.transport.write(data[: max(0, left)])
        if cut is not None and len(data) >= left:
            self._is_cut = True
            if cut.how == RST:
                self._reset()
            elif cut.how == FIN:
                self.over()

    def over(self) -> None:
        for end in (self.near, self.far):
            if end.transport is not None:
                end.transport.close()

    def _reset(self) -> None:
        for end in (self.near, self.far):
            if end.transport is not None:
                opened = end.transport.get_extra_info("socket")
                if opened.family == socket.AF_INET:
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOW)
                end.transport.abort()

    def lost(self) -> None:
        self.over()
        if self.near.transport is None and self.far.transport is None:
            self._proxy.running.discard(self)


class End(asyncio.Protocol):
    """One of the two connections of a conversation."""

    def __init__(self, conversation: Conversation, direction: str) -> None:
        self._conversation = conversation
        self._direction = direction
        self._connecting: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self._direction == ASKED:
            transport.pause_reading()
            self._connecting = asyncio.create_task(self._conversation.connect())

    def data_received(self, data: bytes) -> None:
        self._conversation.heard(self._direction, data)

    def connection_lost(self, _: Exception | None) -> None:
        self.transport = None
        self._conversation.lost()


@asynccontextmanager
async def cut_proxy(url: str) -> AsyncIterator[CutProxy]:
    with tempfile.TemporaryDirectory(prefix="pillarbox-cut-") as folder:
        made = CutProxy(url, Path(folder))
        await made.open()
        try:
            yield made
        finally:
            await made.close()
