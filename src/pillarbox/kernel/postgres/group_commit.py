"""Group commit: callers that arrive while a commit is in flight share the next one (architecture 2.6).

There is no timer unless `linger` is set: callers gather while a flush is in flight. Each caller gets its own
answer after the commit that holds its row. When a flush fails for a reason that one item may have caused, the
batch is cut in half and both halves are tried. So a bad row never fails other rows.

A caller with a time limit (`time_limit`) waits no longer than that. An item whose commit has not begun by
then is taken out again; of one that is being committed the outcome is unknown.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from pillarbox.kernel.observability.metrics import SECONDS, SIZES, Histogram
from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.postgres.time_limit import RepeatingTimer, unlimited
from pillarbox.kernel.wire import problems

Item = TypeVar("Item")
Result = TypeVar("Result")

COMMIT_SECONDS = Histogram(
    "pillarbox_commit_seconds", "How long group commits took, by what they commit.", SECONDS, ("kind",)
)
COMMIT_ITEMS = Histogram(
    "pillarbox_commit_items", "How many callers shared a group commit.", SIZES, ("kind",)
)

NEVER = float("inf")

_Waiting = tuple[Item, int, asyncio.Future[Result], float]
"""An item, its weight, and who waits for its answer until when. A plain tuple: each mail makes one."""

Flush = Callable[[Sequence[Item]], Awaitable[Sequence[Result | BaseException]]]


class GroupCommit(Generic[Item, Result]):
    """Gathers items and passes them to `flush`, which commits them in one transaction.

    `flush` returns one result per item, in order; an exception among the results is raised to the
    caller of that item alone. An exception raised by `flush` means that nothing was committed.
    `shared` names the exceptions that no item can have caused (the database is gone): they are
    given to every caller at once, without cutting the batch.

    `kind` is the label of its metrics. Where nobody waits for the answers a flush may `linger` for so many
    seconds, so that more share it; with one flusher only.

    At most `most_items` items or `most_weight` of weight go into one flush, at most `flushers` flushes
    run at once, and beyond `most_waiting` of waiting weight callers are refused with 503.
    """

    def __init__(
        self,
        flush: Flush[Item, Result],
        *,
        kind: str = "other",
        weigh: Callable[[Item], int] = lambda _: 1,
        most_items: int = 500,
        most_weight: int = 8 * 1024 * 1024,
        most_waiting: int = 256 * 1024 * 1024,
        flushers: int = 2,
        linger: float = 0.0,
        shared: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._flush = flush
        self._labels = (kind,)
        self._weigh = weigh
        self._most_items = most_items
        self._most_weight = most_weight
        self._most_waiting = most_waiting
        self._flushers = flushers
        self._linger = linger
        self._shared = shared
        self._waiting: deque[_Waiting[Item, Result]] = deque()
        self._committing: list[Sequence[_Waiting[Item, Result]]] = []
        self._open: list[_Waiting[Item, Result]] | None = None
        """The batch that is being flushed as a whole, and that others may join."""
        self._timer = RepeatingTimer(self._answer_overdue)
        self._weight = 0
        self._running: set[asyncio.Task[None]] = set()
        self._active = 0

    @property
    def weight(self) -> int:
        """The weight that waits or is being flushed."""
        return self._weight

    async def submit(self, item: Item) -> Result:
        """Return when `item` is committed; raise the error of this item, `DatabaseGone` where it was not
        committed in time and will not be, `OutcomeUnknown` where it may still be."""
        weight = self._weigh(item)
        if self._weight and self._weight + weight > self._most_waiting:
            raise problems.ServerOverloaded("The service is busy right now. Try again later.")
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._weight += weight
        if self._active < self._flushers:
            self._start()
        limit = time_limit.current()
        if limit is None:
            self._waiting.append((item, weight, answer, NEVER))
            return await answer
        now = time.monotonic()
        self._waiting.append((item, weight, answer, now + limit.left))
        self._timer.arm()
        try:
            return await answer
        finally:
            limit.left -= time.monotonic() - now

    def join_flush(self, fits: Callable[[Item], bool]) -> list[Item]:
        """Let those that wait and fit share the flush in flight; returns their items. Their results follow
        those of the others, in this order.

        For a flush that has waited for something itself, and has not written yet; with one flusher only.
        """
        joining: list[_Waiting[Item, Result]] = []
        if self._open is None or not self._waiting:
            return []
        items, total = len(self._open), sum([weight for _, weight, _, _ in self._open])
        staying: deque[_Waiting[Item, Result]] = deque()
        for waiting in self._waiting:
            is_room = items < self._most_items and total + waiting[1] <= self._most_weight
            if is_room and fits(waiting[0]):
                joining.append(waiting)
                items, total = items + 1, total + waiting[1]
            else:
                staying.append(waiting)
        self._waiting = staying
        self._open += joining
        return [item for item, _, _, _ in joining]

    def _start(self) -> None:
        """Start one more flusher."""
        self._active += 1
        task = asyncio.create_task(self._run(), context=unlimited())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def drain(self) -> None:
        """Return when nothing waits and no flush is in flight."""
        while self._running:
            await asyncio.wait(tuple(self._running))

    async def _run(self) -> None:
        try:
            # One turn of the loop lets everything that is ready to arrive join this flush.
            await asyncio.sleep(0)
            while self._waiting:
                if self._linger and len(self._waiting) < self._most_items:
                    await asyncio.sleep(self._linger)
                if not self._waiting:
                    break
                batch = self._gather()
                self._committing.append(batch)
                self._open = batch
                try:
                    await self._commit(batch)
                finally:
                    self._open = None
                    self._committing.remove(batch)
                    self._weight -= sum([weight for _, weight, _, _ in batch])
        finally:
            # Counted down in the same step as the last look at what waits: a caller that comes later
            # look starts a flusher of its own.
            self._active -= 1

    def _gather(self) -> list[_Waiting[Item, Result]]:
        batch = [self._waiting.popleft()]
        total = batch[0][1]
        while self._waiting and len(batch) < self._most_items:
            weight = self._waiting[0][1]
            if total + weight > self._most_weight:
                break
            batch.append(self._waiting.popleft())
            total += weight
        return batch

    def _answer_overdue(self) -> bool:
        """Answer those whose time is over; returns whether others still wait."""
        now = time.monotonic()
        overdue = [waiting for waiting in self._waiting if waiting[3] <= now]
        if overdue:
            self._waiting = deque([waiting for waiting in self._waiting if waiting[3] > now])
        for _, weight, answer, _ in overdue:
            self._weight -= weight
            _fail(answer, problems.DatabaseGone())
        for batch in self._committing:
            for _, _, answer, until in batch:
                if until <= now:
                    _fail(answer, problems.OutcomeUnknown())
        return bool(self._waiting or self._committing)

    async def _commit(self, batch: Sequence[_Waiting[Item, Result]]) -> None:
        started = time.perf_counter()
        try:
            results = await self._flush([item for item, _, _, _ in batch])
        except self._shared as gone:
            for _, _, answer, _ in batch:
                _fail(answer, gone)
        except asyncio.CancelledError:
            for _, _, answer, _ in batch:
                answer.cancel()
            raise
        except Exception as failure:
            self._open = None
            if len(batch) == 1:
                _fail(batch[0][2], failure)
                return
            half = len(batch) // 2
            await self._commit(batch[:half])
            await self._commit(batch[half:])
        else:
            COMMIT_SECONDS.observe(time.perf_counter() - started, self._labels)
            COMMIT_ITEMS.observe(len(batch), self._labels)
            for (_, _, answer, _), result in zip(batch, results, strict=True):
                if isinstance(result, BaseException):
                    _fail(answer, result)
                elif not answer.done():
                    answer.set_result(result)


def _fail(answer: asyncio.Future[Result], failure: BaseException) -> None:
    if not answer.done():
        answer.set_exception(failure)
