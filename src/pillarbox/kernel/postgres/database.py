"""The database: one pool per process, and the team-scoped view of it that slices get.

`TeamDb` supplies `$1`: a slice cannot forget the team, and a lint refuses a statement that does not
name it. A `TeamDb` made from the pool runs each statement on its own; one made inside `transaction()`
runs all of them in that transaction.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import asyncpg

from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import count_as_away
from pillarbox.kernel.postgres.bounded_pool import BoundedPool, Stateless
from pillarbox.kernel.wire.problems import DatabaseGone, NoConnectionLeft

log = get("database")

T = TypeVar("T")

Connection = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy
Source = asyncpg.Pool | Connection

LOCK_TIMEOUT_MS = 3500
"""For one wait. A row may need two of them, for the place in its queue and for the row itself. Both end
before the time limit of a request (`time_limit.SECONDS`), so the answer is 409 and not 503."""
IDLE_LIMIT_MS = 30_000
"""How long a process may be idle inside a transaction: one that froze must not keep its locks. PostgreSQL
enforces it between two statements, `kernel.postgres.stuck_sessions` inside a statement."""

ENGINE = "pillarbox-engine"
"""The name of the engine's sessions; all others begin with `pillarbox` too."""

STATEMENT_CACHE = 512

CONNECT_SECONDS = 10
STATEMENT_SECONDS = 60
"""How long a connection may take to be made, and a statement of background work to be answered."""

GONE = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.DatabaseDroppedError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TooManyConnectionsError,
    asyncpg.QueryCanceledError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""The errors that are raised when the database cannot be reached, went away in the middle, did not answer in
time or may not be written any more. A `TimeoutError` is an OSError. `tests/faults/test_cut_conversations.py`
cuts conversations at every byte to find them; a lint keeps other modules from lists of their own."""

TROUBLE = (*GONE, asyncpg.PostgresError)
"""All errors that the database may answer with: for work that is left for the next time."""

EXHAUSTED = asyncpg.InsufficientResourcesError
"""The disk, the memory or the connections of the database are at their end: no fault of any work."""

OUTAGES = (*GONE, EXHAUSTED)
"""While these are raised nothing can be stored: the database is away, or its disk or memory is full."""

RETRIED = (*OUTAGES, asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError)
"""The errors that say nothing about the statement itself: it is tried again as it is."""

count_as_away(RETRIED)


def literal(values: Iterable[object]) -> str:
    """Return an array of plain values (ids, numbers, booleans, instants, None) as PostgreSQL's text for it.

    For `$1::text::uuid[]` and the like on hot statements: the driver looks twice at every element of an
    array to find out whether it is an array itself; this is one join. Not for text, which needs quotes.
    """
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


KEPT_PROMISES = {
    "synchronous_commit": "on",
    "statement_timeout": "0",
    "transaction_timeout": "0",
    "idle_session_timeout": "0",
    "default_transaction_isolation": "read committed",
}
"""Settings that a server, a role or a database may have changed for other programs. That would break a
promise of ours: what is acknowledged survives a crash, a wait for a standby is not cut off, and guarded
updates see what others have committed (docs/decisions/0070)."""

SESSION = {
    **KEPT_PROMISES,
    "lock_timeout": str(LOCK_TIMEOUT_MS),
    "idle_in_transaction_session_timeout": str(IDLE_LIMIT_MS),
    "timezone": "UTC",
    "jit": "off",
}

# Older servers do not know every setting. Of synchronous_commit only `off` gives up durability: the other
# values say how far standbys are waited for, which is the operator's to choose.
BEGIN_SESSION = """
    SELECT pg_backend_pid() AS backend, count(set_config(k.name, k.value, false)) AS done
      FROM unnest($1::text[], $2::text[]) AS k (name, value)
     WHERE current_setting(k.name, true) IS NOT NULL
       AND (k.name <> 'synchronous_commit' OR current_setting('synchronous_commit') = 'off')
"""

BY_KEY = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
}
"""For connections whose statements all go from keys to rows. A plan that was made while the tables were
small, and is kept, would read all of them for ever after: until their first analysis at least. And there is
one plan for each statement, so none is made again for other values: that costs more than running it."""


def problem_of(gone: BaseException) -> DatabaseGone:
    """Return the answer to one of `GONE`. A database that has no connection left works, and is not full: the
    operator is told so."""
    if isinstance(gone, asyncpg.TooManyConnectionsError):
        log.error("database.too_many_connections", trouble=str(gone))
        return NoConnectionLeft()
    return DatabaseGone()


async def open_pool(
    url: str, *, limit: int, application: str = "pillarbox", by_key: bool = False
) -> BoundedPool:
    """Open a pool of at most `limit` connections, each with the time-outs of Pillarbox. `by_key`: rows are
    always looked up by index, one by one. Requests are held to their time limit (`time_limit`), other
    statements to `STATEMENT_SECONDS`."""
    pool = BoundedPool(
        url,
        min_size=1,
        max_size=limit,
        max_queries=1_000_000_000,
        max_inactive_connection_lifetime=300,
        loop=None,
        record_class=asyncpg.Record,
        connection_class=Stateless,
        statement_cache_size=STATEMENT_CACHE,
        timeout=CONNECT_SECONDS,
        command_timeout=STATEMENT_SECONDS,
        server_settings={"application_name": application},
        init=partial(_begin_session, {**SESSION, **BY_KEY} if by_key else SESSION),
    )
    return await pool


async def _begin_session(settings: Mapping[str, str], conn: Stateless) -> None:
    """Set what holds for a session. Not at its beginning: PgBouncer refuses parameters it does not know."""
    conn.backend = await begin_session(conn, settings)


async def begin_session(conn: Connection, settings: Mapping[str, str] = KEPT_PROMISES) -> int:
    """Set this for the session, as far as the server knows it; returns the server process."""
    (row,) = await conn.fetch(BEGIN_SESSION, list(settings), list(settings.values()))
    backend: int = row["backend"]
    return backend


async def open_connection(url: str, *, application: str) -> asyncpg.Connection:
    """Open a connection of its own, outside of any pool."""
    return await asyncpg.connect(
        url,
        connection_class=Stateless,
        timeout=CONNECT_SECONDS,
        command_timeout=STATEMENT_SECONDS,
        server_settings={"application_name": application},
    )


async def answered(conn: Connection, *, timeout: float | None = None) -> None:
    """Return when the session has answered; raises one of `TROUBLE` where it does not."""
    await conn.fetchval("SELECT 1", timeout=timeout)


class StatementLimitError(Exception):
    """A statement took longer than `statement_limit` allows, and was ended."""


LIMIT_STATEMENTS = "SELECT set_config('statement_timeout', $1, true)"


@asynccontextmanager
async def transaction(source: Source) -> AsyncIterator[Connection]:
    """Yield a connection inside a transaction: committed on leaving, rolled back on an exception."""
    if isinstance(source, asyncpg.Pool):
        async with source.acquire() as conn:
            try:
                async with conn.transaction():
                    yield conn
            except BaseException:
                _afterwards(conn).clear()
                raise
            for call in _taken(conn):
                call()
    else:
        async with source.transaction():
            yield source


def after_commit(conn: Connection, call: Callable[[], None]) -> None:
    """Call this, once, when the transaction of this connection is committed; never when it is rolled back.

    For wake-ups and what is remembered only: a process that dies between the commit and the call has not
    made it.
    """
    _afterwards(conn)[call] = None


def _afterwards(conn: Connection) -> dict[Callable[[], None], None]:
    # Not by isinstance: to that question asyncpg's connections answer yes for every class of theirs.
    found: dict[Callable[[], None], None] = getattr(getattr(conn, "_con", conn), "afterwards", {})
    return found


def _taken(conn: Connection) -> list[Callable[[], None]]:
    calls = _afterwards(conn)
    taken = list(calls)
    calls.clear()
    return taken


class TeamDb:
    """Statements of one team. `$1` is always the team; the caller's arguments start at `$2`."""

    __slots__ = ("_source", "team_id")

    def __init__(self, source: Source, team_id: UUID) -> None:
        self._source = source
        self.team_id = team_id

    @property
    def source(self) -> Source:
        """The pool or connection underneath, for parts that take a connection (timeline, accept)."""
        return self._source

    @property
    def connection(self) -> Connection:
        """The connection of the transaction that this view is in."""
        if isinstance(self._source, asyncpg.Pool):
            raise RuntimeError("this needs a transaction")
        return self._source

    async def one(self, kind: Callable[..., T], sql: str, *args: Any) -> T | None:
        """Return the first row as `kind(**columns)`, or None."""
        row = await self._source.fetchrow(sql, self.team_id, *args)
        return None if row is None else kind(**row)

    async def all(self, kind: Callable[..., T], sql: str, *args: Any) -> list[T]:
        """Return every row as `kind(**columns)`."""
        return [kind(**row) for row in await self._source.fetch(sql, self.team_id, *args)]

    async def value(self, sql: str, *args: Any) -> Any:
        """Return the first column of the first row, or None."""
        return await self._source.fetchval(sql, self.team_id, *args)

    async def values(self, sql: str, *args: Any) -> Sequence[Any]:
        """Return the first column of every row."""
        return [row[0] for row in await self._source.fetch(sql, self.team_id, *args)]

    async def run(self, sql: str, *args: Any) -> int:
        """Return how many rows the statement changed."""
        status: str = await self._source.execute(sql, self.team_id, *args)
        return int(status.rsplit(" ", 1)[-1])

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[TeamDb]:
        """Yield the same team inside one transaction; inside another one, a savepoint of it."""
        async with transaction(self._source) as conn:
            yield TeamDb(conn, self.team_id)

    @asynccontextmanager
    async def statement_limit(self, seconds: float) -> AsyncIterator[TeamDb]:
        """Yield the same team inside a transaction of its own, of which the database ends each statement that
        takes longer; then this raises StatementLimitError. A statement that is given up from here instead, as
        by `asyncio.timeout`, costs its connection, and goes on for a while."""
        if not isinstance(self._source, asyncpg.Pool):
            raise RuntimeError("the limit would hold for the rest of the transaction")
        try:
            async with self.transaction() as limited:
                await limited.connection.execute(LIMIT_STATEMENTS, f"{round(seconds * 1000)}ms")
                yield limited
        except asyncpg.QueryCanceledError:
            raise StatementLimitError from None

    @asynccontextmanager
    async def joined_transaction(self) -> AsyncIterator[TeamDb]:
        """Yield the same team inside the transaction that is open, without a savepoint; else inside one of
        its own. For what raises only where the whole transaction is to be rolled back."""
        if isinstance(self._source, asyncpg.Pool) or not self._source.is_in_transaction():
            async with self.transaction() as inner:
                yield inner
        else:
            yield self
