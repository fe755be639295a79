"""The process that reads a file, seen from the worker."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

from pillarbox.contacts.imports.batches import ImportPlan
from pillarbox.contacts.imports.reading import reading

ROWS = 4000
PLAN = ImportPlan("utf-8", ",", {"email": 0}, [], skip=False, offset=0, row=0, errors_left=10)


async def endless() -> AsyncIterator[bytes]:
    """More than all pipes hold, at any time."""
    yield b"email\n"
    for first in count(0, 20_000):
        yield b"".join([b"reader.%d@quay.example\n" % number for number in range(first, first + 20_000)])


async def test_a_file_that_is_left_in_its_middle_leaves_no_complaint() -> None:
    """As when another process took the import over. Its pipe breaks while it is written to, which is as it
    should be and nothing that an operator should read about."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    for _ in range(3):
        async with reading(PLAN, 0, endless()) as reader:
            assert (await reader.next(ROWS)).rows == ROWS
            async for _ in reader.lines():
                pass
            await asyncio.sleep(0.05)
        gc.collect()
    await asyncio.sleep(0.1)
    gc.collect()
    assert complaints == []
