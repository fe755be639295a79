"""Commits for each key, beside the group commit that all share.

Some work may wait for a lock. Other work costs the database much because of what its own team has set up, as
a row for each of fifty webhooks. Items with the same key are committed one portion after the other. Keys take
turns, portion by portion, and a bounded number of portions is in the database at once. So the shared group
commit never waits for them, and no key waits for everything that another one has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from pillarbox.kernel.postgres.group_commit import Flush, GroupCommit

Item = TypeVar("Item")
Result = TypeVar("Result")


class KeyedCommits(Generic[Item, Result]):
    """One queue for each key that has something to commit. `flush` is given a portion of one key at a time,
    of at most `most_items` and `most_weight` (one item may be heavier). At most `at_once` portions are in the
    database."""

    def __init__(
        self,
        flush: Flush[Item, Result],
        *,
        kind: str,
        weigh: Callable[[Item], int],
        at_once: int,
        most_waiting: int,
        shared: tuple[type[BaseException], ...],
        most_items: int = 500,
        most_weight: int = 8 * 1024 * 1024,
    ) -> None:
        self._flush = flush
        self._kind = kind
        self._weigh = weigh
        self._most_waiting = most_waiting
        self._shared = shared
        self._most_items = most_items
        self._most_weight = most_weight
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
                most_weight=self._most_weight,
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
