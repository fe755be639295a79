"""A bound on bytes that are held at once (design 6.5): whoever wants more waits its turn."""

from __future__ import annotations

import asyncio


class ByteBudget:
    """A semaphore of bytes; something larger than all of it goes alone."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._free = total
        self._changed = asyncio.Condition()

    def of(self, size: int) -> Share:
        """`async with budget.of(size):` waits until so many bytes are free; nothing waits for 0."""
        return Share(self, min(size, self._total))

    async def enter(self, size: int) -> None:
        if size == 0:
            return
        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= size)
            self._free -= size

    async def leave(self, size: int) -> None:
        if size == 0:
            return
        async with self._changed:
            self._free += size
            self._changed.notify_all()


class Share:
    """A part of a budget, held inside an `async with`."""

    def __init__(self, budget: ByteBudget, size: int) -> None:
        self._budget = budget
        self._size = size

    async def __aenter__(self) -> None:
        await self._budget.enter(self._size)

    async def __aexit__(self, *_: object) -> None:
        await self._budget.leave(self._size)
