"""A connection pool whose callers do not wait for a database that has stopped responding.

asyncpg cancels a statement by opening a second connection for a cancel request and waiting until PostgreSQL
has processed it. A database that has stopped responding never does, so a cancelled caller would keep waiting
in its `finally`. Here a connection that is given up is closed at once, and the cancel request is sent in the
background for `CANCEL_SECONDS`.

This reaches into asyncpg further than its interface goes; `tests/faults/test_cut_conversations.py` and
`tests/kernel/test_bounded_pool.py` see that it holds with the version that is pinned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

import asyncpg
from asyncpg import connect_utils
from asyncpg.exceptions._base import DataError as WrongValue

from pillarbox.kernel.observability.metrics import Counter, Gauge, Labels
from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.postgres.team_share import Gate, TeamShares
from pillarbox.kernel.postgres.time_limit import RepeatingTimer, TimeLimit, TooManyWaiting

CONNECTIONS = Gauge(
    "pillarbox_pool_connections",
    "Database connections by pool: busy, idle, how many there may be (most); requests that wait (waiting).",
    ("pool", "state"),
)
NOT_MADE = Counter(
    "pillarbox_database_connect_failures",
    "Connections of the pools that could not be made: the database had none left (too_many), or for another "
    "reason (other).",
    ("reason",),
    [("too_many",), ("other",)],
)

MOST_WAITING: Final = 256
"""Requests that wait for a connection of one pool; the next one is refused at once."""

CANCEL_SECONDS: Final = 5.0

FIRST_UNASSIGNED_OID: Final = 10_000
"""Types below are assigned by hand in PostgreSQL's source and the same in every server (transam.h)."""

_cancels: set[asyncio.Task[None]] = set()
_types: dict[int, asyncpg.Record] = {}
"""The rows in which servers described such types, elements before their arrays."""


class _NoStatement(NamedTuple):
    """Tell asyncpg that no unnamed statement was sent, so the one it is preparing still stands."""

    name: str = "none"


def _with_clear_errors(name: str) -> Any:
    """Return a method of asyncpg's connection whose exceptions tell a lost connection from a wrong value."""
    method = getattr(asyncpg.Connection, name)

    async def with_clear_errors(self: Stateless, *args: Any, **kwargs: Any) -> Any:
        try:
            return await method(self, *args, **kwargs)
        except WrongValue as wrong:
            # An InterfaceError to asyncpg, as if the connection were to blame.
            raise asyncpg.DataError(str(wrong)) from wrong
        except AttributeError as wrong:
            # Lost between two steps of one statement, asyncpg stumbles over a protocol that is None.
            if self.is_closed():
                raise asyncpg.ConnectionDoesNotExistError("the connection was lost") from wrong
            raise

    return with_clear_errors


def _copying(name: str) -> Any:
    """Return the method for COPY into a table. asyncpg waits until there is room to write, and in a
    connection that is lost there never is: then it stops waiting."""
    method = _with_clear_errors(name)

    async def copying(self: Stateless, *args: Any, **kwargs: Any) -> Any:
        protocol = self._protocol

        def stop_waiting(_: object) -> None:
            protocol.resume_writing()

        self.add_termination_listener(stop_waiting)
        try:
            return await method(self, *args, **kwargs)
        finally:
            self.remove_termination_listener(stop_waiting)

    return copying


class Stateless(asyncpg.Connection):
    """A connection that needs no cleaning: Pillarbox keeps no session state, and the usual clean-up
    would cost every statement a second round trip."""

    _addr: Any
    _loop: asyncio.AbstractEventLoop
    _params: Any
    _protocol: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.afterwards: dict[Callable[[], None], None] = {}
        self.backend: int | None = None
        """The server process, where it was asked for: a pooler names another one when a session begins."""

    def get_server_pid(self) -> int:
        return self.backend if self.backend is not None else super().get_server_pid()

    def get_reset_query(self) -> str:
        return ""

    async def _introspect_types(self, typeoids: Collection[int], timeout: float | None) -> tuple[Any, Any]:
        """Return the types of these ids. asyncpg would ask for arrays of numbers, times and ids on each
        connection, which costs PostgreSQL more than all else that a new connection does."""
        if not all(oid in _types for oid in typeoids):
            rows, statement = await super()._introspect_types(typeoids, timeout)  # type: ignore[misc]
            _types.update((row["oid"], row) for row in rows if row["oid"] < FIRST_UNASSIGNED_OID)
            return rows, statement
        return list(_types.values()), _NoStatement()

    _execute = _with_clear_errors("_execute")
    _executemany = _with_clear_errors("_executemany")
    _prepare = _with_clear_errors("_prepare")
    _copy_in = _copying("_copy_in")
    copy_records_to_table = _copying("copy_records_to_table")
    _copy_out = _with_clear_errors("_copy_out")

    def abandon(self) -> None:
        """Close the connection now; callers that wait for an answer get a connection error."""
        protocol = self._protocol
        if protocol is not None and not self.is_closed():
            asked = self._loop.create_task(self._ask_to_stop(protocol.backend_pid, protocol.backend_secret))
            _cancels.add(asked)
            asked.add_done_callback(_cancels.discard)
        self.terminate()

    def _cancel_current_command(self, *_: Any) -> None:
        # asyncpg calls this in the middle of a change of its protocol's state, so not in place.
        self._loop.call_soon(self.abandon)

    async def _ask_to_stop(self, pid: int, secret: int) -> None:
        """Send the cancel request; it only spares PostgreSQL work that nobody needs any more."""
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await connect_utils._cancel(  # type: ignore[attr-defined]
                    loop=self._loop,
                    addr=self._addr,
                    params=self._params,
                    backend_pid=pid,
                    backend_secret=secret,
                )
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return


class _Checkout(NamedTuple):
    """Since when a request has a connection, and its limit, with the time that it had left then."""

    since: float
    limit: TimeLimit
    team: UUID | None = None
    gate: Gate | None = None
    """Which share it counts against, where it does."""

    def spent(self) -> float:
        return time.monotonic() - max(self.since, self.limit.renewed)


class BoundedPool(asyncpg.Pool):
    """asyncpg's pool, where requests wait no longer than their time limit, for a connection and with one."""

    __slots__ = ("_shares", "_taken", "_timer", "_waiting")

    _queue: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._taken: dict[Any, _Checkout] = {}
        self._waiting = 0
        self._shares = TeamShares(self.get_max_size())
        self._timer = RepeatingTimer(self._end_overdue)

    @property
    def waiting(self) -> int:
        """How many requests wait for a connection."""
        return self._waiting

    async def _get_new_connection(self) -> Any:
        try:
            return await super()._get_new_connection()  # type: ignore[misc]
        except asyncpg.TooManyConnectionsError:
            NOT_MADE.add(1, ("too_many",))
            raise
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            NOT_MADE.add(1, ("other",))
            raise

    async def _acquire(self, timeout: float | None) -> Any:
        acquire = super()._acquire  # type: ignore[misc]
        limit = time_limit.current()
        if limit is None:
            return await acquire(timeout)
        team, gate = limit.team, None
        if team is not None and not limit.connections:
            gate = self._shares.gate(team, is_read=limit.is_read)
            if not gate.enter(team):
                await self._in_turn(gate.wait(team), limit)
        began = time.monotonic()
        try:
            if limit.left > 0 and self._has_idle():
                taken = await acquire(None)
            else:
                taken = await self._awaited(acquire(None), limit)
        except BaseException:
            if gate is not None and team is not None:
                gate.leave(team)
            raise
        limit.connections += 1
        self._taken[taken] = _Checkout(began, limit, team, gate)
        self._timer.arm()
        return taken

    async def _in_turn(self, turn: Coroutine[Any, Any, None], limit: TimeLimit) -> None:
        """Wait for the share of the team, within the time limit."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, limit.left)):
                await turn
        finally:
            limit.left -= time.monotonic() - began

    async def _awaited(self, acquired: Coroutine[Any, Any, Any], limit: TimeLimit) -> Any:
        """Return a connection that has to be waited for, or made."""
        if limit.left <= 0:
            acquired.close()
            raise TimeoutError("the time limit of this request is over")
        if self._waiting >= MOST_WAITING:
            acquired.close()
            raise TooManyWaiting("too many requests wait for a connection")
        self._waiting += 1
        began = time.monotonic()
        try:
            async with asyncio.timeout(limit.left):
                return await acquired
        except BaseException:
            limit.left -= time.monotonic() - began
            raise
        finally:
            self._waiting -= 1

    def _has_idle(self) -> bool:
        free = self._queue._queue
        return bool(free) and (free[-1].is_connected() or any(holder.is_connected() for holder in free))

    async def release(self, connection: Any, *, timeout: float | None = None) -> None:
        """Take a connection back; never fails, and waits for nothing.

        What was done with it is done, whether or not it has died since. One that is not at rest is closed.
        """
        taken = self._taken.pop(connection, None)
        if taken is not None:
            taken.limit.left -= taken.spent()
            taken.limit.connections -= 1
            if taken.gate is not None and taken.team is not None:
                taken.gate.leave(taken.team, time.monotonic() - taken.since)
        conn = connection._con
        if conn is None:
            return
        conn._on_release()
        protocol = conn._protocol
        if protocol is None or conn.is_closed():
            conn.terminate()
        elif protocol._is_cancelling() or protocol.is_in_transaction():
            conn.abandon()
        else:
            # Nothing is to be cleaned, so this does not suspend, and needs no task of its own.
            await connection._holder.release(None)

    def _end_overdue(self) -> bool:
        for connection, taken in tuple(self._taken.items()):
            if taken.spent() > taken.limit.left and connection._con is not None:
                connection._con.abandon()
        return bool(self._taken)


async def close_within(pool: asyncpg.Pool, seconds: float) -> None:
    """Close the pool gracefully, or after the time limit abruptly: a hanging database never confirms it."""
    try:
        async with asyncio.timeout(seconds):
            await pool.close()
    except TimeoutError:
        pool.terminate()


def watch_pools(pools: Mapping[str, asyncpg.Pool]) -> None:
    """Report the connections of these pools to Prometheus, under these names."""

    def read() -> dict[Labels, float]:
        found: dict[Labels, float] = {}
        for name, pool in pools.items():
            idle = pool.get_idle_size()
            found[name, "idle"] = idle
            found[name, "busy"] = pool.get_size() - idle
            found[name, "most"] = pool.get_max_size()
            found[name, "waiting"] = pool.waiting if isinstance(pool, BoundedPool) else 0
        return found

    CONNECTIONS.read = read
