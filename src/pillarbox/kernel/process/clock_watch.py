"""Detects that the machine's clock is set while the process runs.

Wall time and boot time advance at the same rate; where their difference changes by more than `TOLERATED`
between two looks, the wall clock was set. Leases, limits and back-off are counted on boot time and do not
notice. But what is due at an instant of wall time was written by the clock of that moment. So each jump is
counted, logged and kept as a row, which `pillarbox doctor` shows; and where the clock was set back, the
corrections run on what the clock that was ahead has dated. They also run at the first look of a process where
something is dated in the future: the clock may have been set back before it began. One process of a host does
this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids, first_id
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.observability.metrics import Counter
from pillarbox.kernel.postgres.database import TROUBLE, Source
from pillarbox.kernel.process import queries

log = get("clock")

LOOK_SECONDS: Final = 1.0
TOLERATED: Final = 2.0
"""Seconds; a clock that is only slewed moves by less than a thousandth of that between two looks."""

TORN: Final = 0.5
"""Seconds that reading both clocks may take; a reading that was interrupted for longer is ignored."""

MOST_KEPT: Final = 100

JUMPS = Counter(
    "pillarbox_clock_jumps_total",
    "How often the machine's clock was set by more than two seconds, by direction.",
    ("direction",),
    [("forward",), ("back",)],
)

AHEAD: Final = timedelta(seconds=15)
"""Ids may be ahead of the clock by less (`kernel.ids.MOST_AHEAD`)."""

ClockCorrection = Callable[[datetime], Awaitable[int]]
"""Corrects what is dated after this instant; returns how many rows those were."""


class Jump(NamedTuple):
    """The clock was set by so many seconds; `at` is what it said afterwards."""

    at: datetime
    seconds: float


class ClockWatch:
    """Compares the two clocks again and again."""

    def __init__(
        self, source: Source, clock: Clock, ids: Ids, corrections: Sequence[ClockCorrection] = ()
    ) -> None:
        self._source = source
        self._clock = clock
        self._ids = ids
        self._corrections = corrections
        self._reading = (clock.now(), clock.boottime())
        self._unkept: list[Jump] = []
        self._uncorrected: list[ClockCorrection] = []
        self._is_first = True

    async def look(self) -> Jump | None:
        """Return the jump since the last look, if there was one. What it asks of the database is asked again
        at the next look where it does not answer."""
        jump = self._jump()
        if jump is not None:
            direction = "forward" if jump.seconds > 0 else "back"
            JUMPS.add(labels=(direction,))
            log.warning("clock.jumped", seconds=round(jump.seconds, 3), direction=direction)
            self._unkept = [*self._unkept, jump][-MOST_KEPT:]
            if jump.seconds < 0:
                self._uncorrected = list(self._corrections)
        if self._is_first:
            self._is_first = not await self._is_done(self._look_back())
        if self._unkept and await self._is_done(self._keep()):
            self._unkept = []
        self._uncorrected = [
            correction
            for correction in self._uncorrected
            if not await self._is_done(self._correct(correction))
        ]
        return jump

    async def run(self) -> None:
        """Look once a second."""
        failures = LoopFailures("clock.watch")
        while True:
            await self._clock.sleep(max(LOOK_SECONDS, failures.pause))
            await failures.attempt(self.look())

    def _jump(self) -> Jump | None:
        before = self._clock.boottime()
        now, boottime = self._clock.now(), self._clock.boottime()
        if boottime - before > TORN:
            return None
        (then, since), self._reading = self._reading, (now, boottime)
        seconds = (now - then).total_seconds() - (boottime - since)
        return Jump(now, seconds) if abs(seconds) > TOLERATED else None

    async def _keep(self) -> None:
        ids = [self._ids.new() for _ in self._unkept]
        instants, seconds = zip(*self._unkept, strict=True)
        await queries.store_jumps(self._source, ids, instants, seconds, MOST_KEPT - len(ids))

    async def _look_back(self) -> None:
        """Find out whether the clock was set back while nothing ran, or before all was mended."""
        now = self._clock.now()
        instant, email_id = now + timedelta(seconds=TOLERATED), first_id(now + AHEAD)
        if await queries.is_dated_ahead(self._source, instant, email_id):
            self._uncorrected = list(self._corrections)

    async def _correct(self, correction: ClockCorrection) -> None:
        corrected = await correction(self._clock.now() + timedelta(seconds=TOLERATED))
        if corrected:
            log.warning("clock.mended", rows=corrected)

    async def _is_done(self, work: Awaitable[None]) -> bool:
        try:
            await work
        except TROUBLE as trouble:
            log.warning("clock.not_written", trouble=repr(trouble)[:200])
            return False
        return True
