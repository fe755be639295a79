"""A TCP connection between Pillarbox and its database that a test can cut, stall and restore."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

NAME = ".s.PGSQL.5432"
CHUNK = 256 * 1024


class DatabaseLink:
    """Forwards the sessions of one PostgreSQL socket; `url` leads through it."""

    def __init__(self, url: str, folder: Path) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self._far = f"{query['host'][0]}/{NAME}"
        self._near = folder / NAME
        self.url = f"{parts.scheme}://{parts.path}?host={quote(str(folder))}&user={query['user'][0]}"
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._forwarding: set[asyncio.Future[tuple[None, None]]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self.stalls_behind: bytes | None = None
        """When PostgreSQL has been told this nothing comes through any more, as with `stall`."""

    @property
    def sessions(self) -> int:
        return len(self._ends) // 2

    async def open(self) -> None:
        """Forward from now on."""
        self._server = await asyncio.start_unix_server(self._accept, self._near)

    def cut(self) -> None:
        """Cut every session and refuse new ones, until `open`."""
        if self._server is not None:
            self._server.close()
        self._near.unlink(missing_ok=True)
        for end in self._ends:
            end.transport.abort()

    async def close(self) -> None:
        """Cut, and wait until nothing is left of the sessions."""
        self.cut()
        await asyncio.gather(*self._forwarding, return_exceptions=True)

    def stall(self) -> None:
        """Let nothing through any more, without breaking anything, until `flow`."""
        self._flows.clear()

    def flow(self) -> None:
        self._flows.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_unix_connection(self._far)
        except OSError:
            writer.transport.abort()
            self._ends.discard(writer)
            return
        self._ends.add(far_writer)
        both = asyncio.gather(self._forward(reader, far_writer), self._forward(far_reader, writer))
        self._forwarding.add(both)
        await both
        self._forwarding.discard(both)
        self._ends -= {writer, far_writer}

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(CHUNK):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
                if self.stalls_behind is not None and self.stalls_behind in data:
                    self.stalls_behind = None
                    self.stall()
        except OSError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def database_link(url: str) -> AsyncIterator[DatabaseLink]:
    """Yield a wire that is open, for as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="pillarbox-wire-") as folder:
        made = DatabaseLink(url, Path(folder))
        await made.open()
        try:
            yield made
        finally:
            made.flow()
            await made.close()
