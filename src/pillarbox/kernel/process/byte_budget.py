"""A bound on bytes that are held at once (architecture 6.5); callers that want more wait in order."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class ByteBudget:
    """So many bytes, given out in the order in which they were asked for; something larger than all of them
    goes alone."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._free = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def of(self, size: int) -> BudgetShare:
        """Return a share: `async with budget.of(size):` waits until so many bytes are free; nothing waits
        for 0."""
        return BudgetShare(self, min(size, self._total))

    async def take(self, size: int) -> None:
        if size <= self._free and not self._waiting:
            self._free -= size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            self.give(0 if turn.cancelled() else size)
            raise

    def give(self, size: int) -> None:
        self._free += size
        while self._waiting:
            wanted, turn = self._waiting[0]
            if not turn.cancelled():
                if wanted > self._free:
                    return
                self._free -= wanted
                turn.set_result(None)
            self._waiting.popleft()


class OwnedBudget:
    """A budget of which an owner has at most a part at once: nobody waits long behind one of them."""

    def __init__(self, total: int, part: int) -> None:
        self._all = ByteBudget(total)
        self._part = part
        self._owners: dict[Hashable, ByteBudget] = {}
        self._users: Counter[Hashable] = Counter()

    @asynccontextmanager
    async def of(self, owner: Hashable, size: int) -> AsyncIterator[None]:
        """Hold so many bytes for this owner; wait for its own part first, then for all."""
        own = self._owners.setdefault(owner, ByteBudget(self._part))
        self._users[owner] += 1
        try:
            async with own.of(size), self._all.of(size):
                yield
        finally:
            self._users[owner] -= 1
            if not self._users[owner]:
                del self._users[owner], self._owners[owner]


class BudgetShare:
    """A part of a budget, held inside an `async with`, or from `take` to `give`."""

    def __init__(self, budget: ByteBudget, size: int) -> None:
        self._budget = budget
        self._size = size
        self._held = False

    async def take(self) -> None:
        """Wait until the bytes are free, and take them."""
        if self._size:
            await self._budget.take(self._size)
            self._held = True

    def give(self) -> None:
        """Give the bytes back; further calls do nothing."""
        if self._held:
            self._held = False
            self._budget.give(self._size)

    async def __aenter__(self) -> None:
        await self.take()

    async def __aexit__(self, *_: object) -> None:
        self.give()
