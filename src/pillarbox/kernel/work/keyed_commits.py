"""Commits for each key, beside the group commit that all share: for what may wait for a lock.

Items with the same key wait for the same lock, so in this process one commit at a time is made for them, and
holds a connection. Those with different keys are committed side by side, a bounded number at
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from pillarbox.kernel.postgres.group_commit import Flush, GroupCommit

Item = TypeVar("Item")
Result = TypeVar("Result")


class KeyedCommits(Generic[Item, Result]):
    """One queue for each key that has something to commit. `flush` is given at most `most_items`
    of one key at a time; at most `at_once` run."""

    def __init__(
        self,
        flush: Flush[Item, Result],
        *,
        kind: str,
        weigh: Callable[[Item], int],
        at_once: int,
        most_waiting: int,
        shared: tuple[type[BaseException], ...],
        most_items: int = 1,
    ) -> None:
        self._flush = flush
        self._kind = kind
        self._weigh = weigh
        self._most_waiting = most_waiting
        self._shared = shared
        self._most_items = most_items
        self._turns = asyncio.Semaphore(at_once)
        self._queues: dict[Hashable, GroupCommit[Item, Result]] = {}

    async def submit(self, key: Hashable, item: Item) -> Result:
        """Return when `item` is committed; raise what refused it."""
        queue = self._queues.get(key)
        if queue is None:
            self._queues = {one: used for one, used in self._queues.items() if used.weight}
            queue = self._queues[key] = GroupCommit(
                self._in_turn,
                kind=self._kind,
                weigh=self._weigh,
                most_items=self._most_items,
                most_waiting=self._most_waiting,
                flushers=1,
                shared=self._shared,
            )
        return await queue.submit(item)

    async def drain(self) -> None:
        """Return when nothing waits and nothing is being committed."""
        await asyncio.gather(*[queue.drain() for queue in self._queues.values()])

    async def _in_turn(self, batch: Sequence[Item]) -> Sequence[Result | BaseException]:
        async with self._turns:
            return await self._flush(batch)
