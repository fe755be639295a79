"""Group commits of single teams, beside the one that all teams share.

Some work costs the database much because of what its own team has set up, such as a row for each of fifty
webhooks. It is committed in a queue of that team, in portions of bounded weight. The queues take turns,
portion by portion, and one portion at a time is in the database. So the shared group commit never waits for
them, and no team waits for everything that another one has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar
from uuid import UUID

from pillarbox.kernel.postgres.group_commit import Flush, GroupCommit

Item = TypeVar("Item")
Result = TypeVar("Result")


class TeamQueues(Generic[Item, Result]):
    """One queue for each team that has something to commit. `most_weight` bounds a portion; one item may be
    heavier, and then is a portion of its own."""

    def __init__(
        self,
        flush: Flush[Item, Result],
        *,
        kind: str,
        weigh: Callable[[Item], int],
        most_weight: int,
        most_waiting: int,
        shared: tuple[type[BaseException], ...],
    ) -> None:
        self._flush = flush
        self._kind = kind
        self._weigh = weigh
        self._most_weight = most_weight
        self._most_waiting = most_waiting
        self._shared = shared
        self._turn = asyncio.Semaphore(1)
        self._queues: dict[UUID, GroupCommit[Item, Result]] = {}

    async def submit(self, team_id: UUID, item: Item) -> Result:
        """Return when `item` is committed; raise the error of this item."""
        queue = self._queues.get(team_id)
        if queue is None:
            self._queues = {team: used for team, used in self._queues.items() if used.weight}
            queue = self._queues[team_id] = GroupCommit(
                self._in_turn,
                kind=self._kind,
                weigh=self._weigh,
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
        async with self._turn:
            return await self._flush(batch)
