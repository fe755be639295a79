"""Recognises a connection pooler between us and PostgreSQL, such as PgBouncer, and the mode that it works in.

In session mode a client keeps its server session, and all works as without it. In transaction mode each
transaction may run in another session, which breaks what needs one: LISTEN, advisory locks, settings of the
session and prepared statements. Nothing says so at the beginning; it fails later, and only sometimes. So a
start looks.
"""

from __future__ import annotations

import asyncio
from typing import Final

import asyncpg

from pillarbox.kernel.postgres.database import GONE, Connection

BACKEND: Final = "SELECT pg_backend_pid()"
TRIES: Final = 5
SECONDS: Final = 10.0

ADVICE: Final = (
    "--database-url leads to a connection pooler in transaction mode, but LISTEN, advisory locks, session "
    "settings and prepared statements need a session: use session mode (PgBouncer: pool_mode = session), or "
    "connect to PostgreSQL itself."
)


NO_TRANSACTIONS: Final = "statement pooling mode"
TOO_SMALL: Final = (
    "The connection pooler that --database-url leads to gives no second session: each of our connections "
    "needs one of its own, so raise its pool size (PgBouncer: default_pool_size)."
)


class PoolerError(Exception):
    """The pooler cannot be used; the message is one sentence for the operator."""


async def is_pooled(conn: asyncpg.Connection) -> bool:
    """Return whether something between us and PostgreSQL shares out its sessions: it gives a process number
    of its own when the session begins."""
    return await backend_of(conn) != conn.get_server_pid()


async def backend_of(conn: Connection) -> int:
    """Return the server process of the next transaction. Inside one, because a pooler in transaction mode
    would give the two steps of a statement to different sessions."""
    async with conn.transaction():
        found: int = await conn.fetchval(BACKEND)
        return found


async def refuse_transaction_mode(url: str) -> bool:
    """Raise PoolerError where two clients share one session; else return whether there is a pooler at all."""
    try:
        return await _is_fit_pooler(url)
    except GONE as lost:
        # Where not even a transaction has a session, the pooler ends the connection and says why.
        if NO_TRANSACTIONS not in str(lost):
            raise
        raise PoolerError(ADVICE) from None


async def _is_fit_pooler(url: str) -> bool:
    first = await _connected(url)
    try:
        if not await is_pooled(first):
            return False
        second = await _connected(url)
        try:
            async with asyncio.timeout(SECONDS):
                shares = await _share_sessions(first, second)
        except TimeoutError:
            raise PoolerError(TOO_SMALL) from None
        finally:
            second.terminate()
    finally:
        first.terminate()
    if shares:
        raise PoolerError(ADVICE)
    return True


async def _share_sessions(first: asyncpg.Connection, second: asyncpg.Connection) -> bool:
    """Return whether the sessions of two clients change, or are one."""
    theirs = await backend_of(first)
    for _ in range(TRIES):
        async with second.transaction():
            other = await second.fetchval(BACKEND)
            if other == theirs or await backend_of(first) != theirs:
                return True
    return False


async def _connected(url: str) -> asyncpg.Connection:
    return await asyncpg.connect(
        url,
        timeout=SECONDS,
        command_timeout=SECONDS,
        statement_cache_size=0,
        server_settings={"application_name": "pillarbox supervisor"},
    )
