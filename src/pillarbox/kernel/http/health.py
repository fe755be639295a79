"""`GET /health` (conventions section 13): is this process ready for mail (OPS-02)?

Ready means that mail accepted now would be kept: the database answers, and there is space on the disk. The
key ring has every key that the database needs. The blob store answers, is the one of this database, and has
never failed to make a blob durable. Migrations, the key ring and the blob store are checked before the server
opens, the last two again every few seconds. While the process is not ready it still delivers accepted mail.
The supervisor watches whether the process runs at all.

The answer comes within a second, whatever the database does: it is asked on a
connection of its own, and concurrent requests share one question.
"""

from __future__ import annotations

import asyncio
from typing import Literal

import asyncpg
import msgspec

from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TROUBLE, answered, open_connection
from pillarbox.kernel.postgres.time_limit import unlimited
from pillarbox.kernel.security.ring_check import RingWatch
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.kernel.storage.store_check import StoreWatch
from pillarbox.kernel.wire.problems import DatabaseGone, ServerOverloaded

ANSWER_TIMEOUT = 0.8
QUESTION_SECONDS = 5.0
"""After so many seconds an unanswered question is given up and its connection closed."""


class DatabaseProbe:
    """Whether the database answers."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._conn: asyncpg.Connection | None = None
        self._probe: asyncio.Task[bool] | None = None

    async def answers(self) -> bool:
        """Return whether it answers within `ANSWER_TIMEOUT`."""
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._ask(), context=unlimited())
        # By the time that this goes on, another request may have asked the next question.
        probe = self._probe
        done, _ = await asyncio.wait([probe], timeout=ANSWER_TIMEOUT)
        return bool(done) and probe.result()

    async def close(self) -> None:
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.wait([self._probe])
        self._give_up()

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(QUESTION_SECONDS):
                if self._conn is None or self._conn.is_closed():
                    self._conn = await open_connection(self._url, application="pillarbox health")
                await answered(self._conn)
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
    request.use(RingWatch).check()
    request.use(StoreWatch).check()
    if not request.use(BlobStore).writable:
        raise ServerOverloaded("Attachments cannot be stored right now. Try again later.")
    return Reply(Health("ok"))
