"""Failures of loops that run for ever: how long a loop waits after one, and which of them are logged.

A loop whose work fails goes on, later each time: after 1, 2, 4 … up to `LONGEST_PAUSE` seconds; where the
database did not answer up to `LONGEST_AWAY`, since that ends for all loops at once. The first failure is
logged with its traceback. From then on there is at most one line a minute, with the number of failures since
the line before, and one line when the work succeeds again.

`tests/repository/test_background_loops.py` finds a loop that does not use this.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from pillarbox.kernel.observability.log import get

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
LONGEST_AWAY: Final = 2.0
LINE_EVERY: Final = 60.0


_away: tuple[type[BaseException], ...] = ()


def count_as_away(errors: tuple[type[BaseException], ...]) -> None:
    """Say which errors mean that the database did not answer. Its module does so when it is loaded: the
    supervisor has such loops and does not load the driver for them."""
    global _away
    _away = errors


class LoopFailures:
    """Logs the failures of one loop. `loop` names it in the log: the text before its first dot is the part of
    the log and the first word of its events."""

    def __init__(self, loop: str, now: Callable[[], float] = time.monotonic) -> None:
        self._loop = loop
        self._part = loop.partition(".")[0]
        self._log = get(self._part)
        self._now = now
        self._unlogged = 0
        self._in_a_row = 0
        self._line_at = float("-inf")
        self._is_known = False
        self.pause = 0.0
        """Seconds until the next attempt; 0 after one that succeeded."""

    async def attempt(self, work: Awaitable[object]) -> bool:
        """Await the work; False where it failed with an `Exception`. Only other exceptions are raised."""
        try:
            await work
        except Exception as trouble:
            self.failed(trouble)
            return False
        self.succeeded()
        return True

    def failed(self, trouble: Exception, **fields: object) -> None:
        """Note a failure; `fields` stand in the line where it is logged."""
        is_away = isinstance(trouble, _away)
        longest = LONGEST_AWAY if is_away else LONGEST_PAUSE
        self.pause = min(longest, FIRST_PAUSE * 2 ** min(self._in_a_row, 10))
        self._in_a_row += 1
        self._unlogged += 1
        now = self._now()
        if now < self._line_at + LINE_EVERY:
            return
        facts = {"loop": self._loop, "failures": self._unlogged, "trouble": repr(trouble)[:200], **fields}
        if is_away:
            self._log.warning(f"{self._part}.database_away", **facts)
        else:
            traceback = None if self._is_known else trouble
            self._log.error(f"{self._part}.loop_failed", exc_info=traceback, **facts)
        self._line_at, self._unlogged, self._is_known = now, 0, True

    def succeeded(self) -> None:
        """Note that the work was done; logged once after failures that were logged."""
        if self._is_known:
            self._log.info(f"{self._part}.loop_recovered", loop=self._loop, failures=self._unlogged)
            self._is_known = False
        self._in_a_row, self.pause = 0, 0.0
