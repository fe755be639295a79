"""Runs long work outside the event loop, in two threads per process, and what is very large in a third.

A thread helps the loop only where the work lets other threads run: pure Python does every five milliseconds,
a call of a C library does when it returns. So what goes on here takes its input in pieces. The threads are
few because each one that computes makes the loop wait for its turn. Very large work has one of its own, in
turn, so that nobody else waits behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

THREADS: Final = 2
IN_PLACE: Final = 32 * 1024
"""Octets that the loop reads by itself."""

VERY_LARGE: Final = 2 * 1024 * 1024
"""Octets from which on work waits for work of its kind alone."""

_threads = ThreadPoolExecutor(THREADS, "pillarbox-offload")
_thread_of_large = ThreadPoolExecutor(1, "pillarbox-large")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a thread and return its result."""
    return await asyncio.get_running_loop().run_in_executor(_threads, lambda: work(*args, **kwargs))


async def in_thread_if_large(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run the work in a thread; in place where the input has few octets, behind other large work where it has
    very many."""
    if size <= IN_PLACE:
        return work(*args, **kwargs)
    if size < VERY_LARGE:
        return await in_thread(work, *args, **kwargs)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_thread_of_large, lambda: work(*args, **kwargs))
