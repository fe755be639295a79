"""When a process of this host last had mail that is no copy of a broadcast.

The processes of a host share its processors, so copies yield to the mail of all of them.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pillarbox.kernel.process import shared_memory

QUIET_AFTER: Final = 0.25
"""Seconds after which there is no other mail any more: its own delivery is over by then, as a rule."""


class TransactionalActivity:
    """The time of the last such mail, in the memory behind `fd` that all processes of this host attach.

    It is a hint: nothing is locked.
    """

    def __init__(self, fd: int) -> None:
        begin = shared_memory.SIZE - shared_memory.OTHER_MAIL
        whole = memoryview(shared_memory.attach(fd))
        self._at = whole[begin : begin + shared_memory.OTHER_MAIL].cast("d")

    def note(self) -> None:
        """Note that other mail is here."""
        self._at[0] = asyncio.get_running_loop().time()

    @property
    def is_here(self) -> bool:
        """Whether there was other mail a moment ago."""
        return asyncio.get_running_loop().time() - self._at[0] <= QUIET_AFTER
