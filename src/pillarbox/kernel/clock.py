"""Time as a value that is handed in.

Only the entry points ask the operating system for the time. All other code asks the clock it receives, so a
test can run three days of retries in milliseconds.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for rows, boot time for leases and limits, and a sleep that follows both."""

    def now(self) -> datetime:
        """Return the current instant in UTC, with microseconds."""
        ...

    def boottime(self) -> float:
        """Return the seconds since an arbitrary start; they never go back and count time spent suspended."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when `seconds` have passed on this clock."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def boottime(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
