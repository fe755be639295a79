"""`GET /health` (conventions section 13): is this process ready for mail (OPS-02)?

Ready means that what is accepted now would last: the database answers, there is room on the disk, and the
blob store has never failed to make a blob durable. Migrations and the key ring are seen to before the door
opens. While it is not ready mail that is here already still goes out; whether the process lives at all, the
supervisor watches.
"""

from __future__ import annotations

import asyncio
from typing import Literal

import asyncpg
import msgspec

from pillarbox.kernel.blobs import BlobStore
from pillarbox.kernel.http import Reply, Request
from pillarbox.kernel.problems import DatabaseGone, Overloaded
from pillarbox.kernel.room import Room
from pillarbox.kernel.routing import Access, route

PATIENCE_SECONDS = 3.0


class Health(msgspec.Struct):
    """Nothing else is in the body."""

    status: Literal["ok"]


@route("GET", "/health", needs=Access.PUBLIC, summary="Tell whether the service works")
async def health(request: Request) -> Reply[Health]:
    pool = request.use(asyncpg.Pool)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await pool.fetchval("SELECT 1")
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        raise DatabaseGone from None
    request.use(Room).check()
    if not request.use(BlobStore).writable:
        raise Overloaded("Attachments cannot be stored right now. Try again later.")
    return Reply(Health("ok"))
