"""`GET /health` (conventions section 13)."""

from __future__ import annotations

import asyncio

import asyncpg
import msgspec

from pillarbox.kernel.http import Reply, Request
from pillarbox.kernel.problems import DatabaseGone
from pillarbox.kernel.routing import Access, route

PATIENCE_SECONDS = 3.0


class Health(msgspec.Struct):
    """Nothing else is in the body."""

    status: str


@route("GET", "/health", needs=Access.PUBLIC, reply=Health, summary="Tell whether the service works")
async def health(request: Request) -> Reply:
    pool = request.use(asyncpg.Pool)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await pool.fetchval("SELECT 1")
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        raise DatabaseGone from None
    return Reply(Health("ok"))
