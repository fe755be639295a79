"""Long work outside of the event loop."""

from __future__ import annotations

import asyncio
import threading

from pillarbox.kernel.process.offload import IN_PLACE, THREADS, VERY_LARGE, in_thread_if_large


async def test_very_large_work_keeps_nobody_else_waiting() -> None:
    """Several large batches wait for each other, and a smaller one begins at once."""
    free = threading.Event()
    large = [asyncio.create_task(in_thread_if_large(VERY_LARGE, free.wait, 30)) for _ in range(THREADS + 1)]
    try:
        assert await asyncio.wait_for(in_thread_if_large(IN_PLACE + 1, lambda: "done"), 10) == "done"
        assert not any(task.done() for task in large)
    finally:
        free.set()
    assert all(await asyncio.gather(*large))


async def test_small_work_is_done_in_place() -> None:
    assert await in_thread_if_large(IN_PLACE, threading.get_ident) == threading.get_ident()
    assert await in_thread_if_large(IN_PLACE + 1, threading.get_ident) != threading.get_ident()
