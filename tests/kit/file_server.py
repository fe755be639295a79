"""A web server with a few files, for what is fetched by URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def file_server(files: dict[str, bytes]) -> AsyncIterator[tuple[str, list[str]]]:
    """Yield its origin and the paths that were asked for; a file `302 …` redirects, a missing one is 404."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split()[1].decode()
        asked.append(path)
        found = files.get(path)
        if found is None:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        elif found.startswith(b"302 "):
            writer.write(b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % found[4:])
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(found), found))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", asked
    finally:
        server.close()
