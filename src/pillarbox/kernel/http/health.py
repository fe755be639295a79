"""`GET /health` (conventions section 13): is this process ready for mail (OPS-02)?

Ready means that what is accepted now would last: the database answers, there is room on the disk, and the
blob store has never failed to make a blob durable. Migrations and the key ring are checked before the server
opens. While it is not ready mail that is here already still goes out; whether the process lives at all, the
supervisor watches.

The answer comes within a second, whatever the database does: it is asked on a connection that nobody else
uses, and by one question for all who want to know.
"""

from __future__ import annotations

import asyncio
from typing import Literal

import asyncpg
import msgspec

from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TROUBLE, open_connection
from pillarbox.kernel.postgres.time_limit import unlimited
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.kernel.wire.problems import DatabaseGone, Overloaded

PATIENCE_SECONDS = 0.8
QUESTION_SECONDS = 5.0
"""When a question that is not answered is given up, and its connection with it."""


class DatabaseProbe:
    """Whether the database answers."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._conn: asyncpg.Connection | None = None
        self._asking: asyncio.Task[bool] | None = None

    async def answers(self) -> bool:
        """Whether it answers within `PATIENCE_SECONDS`."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(), context=unlimited())
        done, _ = await asyncio.wait([self._asking], timeout=PATIENCE_SECONDS)
        return bool(done) and self._asking.result()

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        self._give_up()

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(QUESTION_SECONDS):
                if self._conn is None or self._conn.is_closed():
                    self._conn = await open_connection(self._url, application="pillarbox health")
                await self._conn.fetchval("SELECT 1")
        except TROUBLE:
            self._give_up()
            return False
        return True

    def _give_up(self) -> None:
        if self._conn is not None:
            self._conn.terminate()
            self._conn = None


class Health(msgspec.Struct):
    """Nothing else is in the body."""

    status: Literal["ok"]


@route("GET", "/health", needs=Access.PUBLIC, summary="Tell whether the service works")
async def health(request: Request) -> Reply[Health]:
    if not await request.use(DatabaseProbe).answers():
        raise DatabaseGone
    request.use(DiskSpace).check()
    if not request.use(BlobStore).writable:
        raise Overloaded("Attachments cannot be stored right now. Try again later.")
    return Reply(Health("ok"))
