"""How long the database may keep one request waiting (architecture 6.5).

A request has a few seconds for all its database work together: waiting for a connection, statements and the
commit that it shares with others. Time that it spends elsewhere (reading its body, DNS, the blob store) does
not count. The limit travels in a context variable, so whatever a request calls is held to it: pools
(`bounded_pool`) give up waiting and end connections that take too long, group commits answer their callers.

Background work has no limit here: its statements have the pool's own, and its leases end by time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager
from contextvars import Context, ContextVar, Token
from types import TracebackType
from typing import Any, Final, TypeVar
from uuid import UUID

T = TypeVar("T")

SECONDS: Final = 8.0
"""For one request. With the step of the sweep an answer comes within ten seconds."""

STEP: Final = 0.5
"""The interval of looks for overdue work; one timer serves all."""

MOST_SHARING: Final = 1000
"""Callers of one process that wait for results of others; the next one is refused at once."""

unlimited: Final = Context
"""Makes the context of a task that a request starts and that outlives it. Each has its own: what one of them
sets is no business of the others."""


class TimeLimit:
    """The seconds that are left; `with TimeLimit():` holds everything inside to it. What began before it was
    `renewed` counts from then on only."""

    __slots__ = ("_token", "connections", "end_turn", "is_read", "left", "renewed", "team")

    def __init__(self, seconds: float = SECONDS) -> None:
        self.left = seconds
        self.renewed = 0.0
        self.team: UUID | None = None
        """Whose request it is, once that is known; `is_read` where it changes nothing."""

        self.is_read = False
        self.connections = 0
        """How many connections the request holds now."""

        self.end_turn: Callable[[], None] | None = None
        """Ends the turn of its team that the request has."""

        self._token: Token[TimeLimit | None] | None = None

    def __enter__(self) -> TimeLimit:
        self._token = _current.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        trouble: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)
            self._token = None


_current: ContextVar[TimeLimit | None] = ContextVar("time_limit", default=None)

current: Final = _current.get
"""The time limit of the caller; None in the background."""


def begin() -> None:
    """Hold the rest of the running task to a new limit: for a task that is one request."""
    _current.set(TimeLimit())


def belongs_to(team: UUID, *, is_read: bool) -> None:
    """Note whose request the caller is: it counts against the share of that team (`team_share`)."""
    limit = current()
    if limit is not None:
        limit.team, limit.is_read = team, is_read


def end_turn() -> None:
    """Let the next request of the team begin: the caller goes on by waiting, not by working."""
    limit = current()
    if limit is not None and limit.end_turn is not None:
        limit.end_turn()


def renew() -> None:
    """Give the caller all its time again: an answer that is sent in parts has it for each of them."""
    limit = current()
    if limit is not None:
        limit.left, limit.renewed = SECONDS, time.monotonic()


@asynccontextmanager
async def bounded() -> AsyncIterator[None]:
    """Count the time inside the block as database work; TimeoutError when the request's limit is used up."""
    limit = current()
    if limit is None:
        yield
        return
    began = time.monotonic()
    try:
        async with asyncio.timeout(max(0.0, limit.left)):
            yield
    finally:
        limit.left -= time.monotonic() - began


class AlreadyRuns(Exception):  # noqa: N818 - the work of that name has begun
    """Work of this name has begun and has not ended."""


_running: dict[Hashable, asyncio.Task[Any]] = {}


async def to_its_end(work: Coroutine[Any, Any, T], name: Hashable) -> T:
    """Return the result of work that goes on without a limit, also where the caller leaves. Of one name one
    runs at a time in a process: raise AlreadyRuns for a second one."""
    if name in _running:
        work.close()
        raise AlreadyRuns
    task = _running[name] = asyncio.create_task(work, context=unlimited())
    task.add_done_callback(lambda ended: _forget(name, ended))
    return await asyncio.shield(task)


def _forget(name: Hashable, ended: asyncio.Task[Any]) -> None:
    del _running[name]
    retrieve_exception(ended)


async def all_ended(seconds: float) -> None:
    """Wait for work that goes on `to_its_end`, for so long at most."""
    loop = asyncio.get_running_loop()
    own = [task for task in _running.values() if task.get_loop() is loop]
    if own:
        await asyncio.wait(own, timeout=seconds)


class TooManyWaiting(TimeoutError):  # noqa: N818
    """Too many callers wait for the database already."""


_sharing = 0


async def shared(result: asyncio.Future[T]) -> T:
    """Return the result of a future for which others may wait: a caller that leaves does not cancel it."""
    global _sharing
    if _sharing >= MOST_SHARING:
        raise TooManyWaiting("too many requests wait for the database")
    _sharing += 1
    try:
        limit = current()
        return await (asyncio.shield(result) if limit is None else _awaited(result, limit))
    finally:
        _sharing -= 1


async def _awaited(result: asyncio.Future[T], limit: TimeLimit) -> T:
    """Return the result, or raise TimeoutError at the limit. The future then goes on for the others that wait
    for it. This runs four times a second for each team, so it is a short form of `bounded`."""
    answer = asyncio.shield(result)
    began = time.monotonic()
    timer = asyncio.get_running_loop().call_later(max(0.0, limit.left), answer.cancel)
    try:
        return await answer
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if result.cancelled() or (task is not None and task.cancelling()):
            raise
        result.add_done_callback(retrieve_exception)
        raise TimeoutError from None
    finally:
        timer.cancel()
        limit.left -= time.monotonic() - began


def retrieve_exception(result: asyncio.Future[T]) -> None:
    """Retrieve the exception of a task for which nobody may be waiting any more: without this callback
    asyncio logs it."""
    if not result.cancelled():
        result.exception()


class RepeatingTimer:
    """Calls `look` every `STEP` seconds for as long as it returns True."""

    __slots__ = ("_look", "_timer")

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look
        self._timer: asyncio.TimerHandle | None = None

    def arm(self) -> None:
        """Start the timer unless it runs."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(STEP, self._turn)

    def _turn(self) -> None:
        self._timer = None
        if self._look():
            self.arm()
