"""How fast one site may be served: it starts small, grows on success and backs off when asked to.

A site is a set of MX hosts (or the relay). What it says is reduced to a signal; what follows from a
signal is here and nowhere else (standards OUT-11, OUT-12).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class SiteSignal(Enum):
    """The signal that one attempt gave about its site."""

    SILENT = "nothing about the site was learned"
    CLEAN = "the site took the mail without complaint"
    SLOW = "the site asks for fewer mails at a time"
    CROWDED = "the site asks for fewer connections"
    UNREACHABLE = "no connection could be had"
    STARVED = "this process could open no connection, whatever the site would say"
    HELD = "the relay refuses us, not a mail"


class SiteLimits(NamedTuple):
    """Slots that a site begins with and may grow to; where it is shared, of all processes together."""

    start: int
    most: int
    is_shared: bool = True


GROW_AFTER = 20
HOLD_SECONDS = 600.0
CROWDED_PAUSE = 5.0
PROBE_LEAD = 5.0
"""So much later than the process that found a site out of reach do the others try it again."""

SLOW_PAUSE = 1.0
BREAK_AFTER = 10
BREAK_SECONDS = 60.0
HOLDS = (30.0, 60.0, 120.0, 300.0)
"""How long a relay that refuses us is left alone, after the first time, the second, …; the last repeats."""

REFUSED_MARGIN = 30.0
"""A mail that waits asks a relay again within this time after a pause."""

WINDOW_SECONDS = 5.0
SETTLE_SECONDS = 10.0
RATE_MARGIN = 0.95
CAREFUL_GROWTH, FAST_GROWTH = 1.02, 1.25
"""Growth of the rate: carefully after a refusal, in strides once the last one is half a minute ago."""

CAREFUL_SECONDS = 30.0
LOWEST_RATE = 0.1
FIRST_RATE = 1.0
HIGHEST_RATE = 200.0
WINDOW_KEPT = 2048


@dataclass(slots=True)
class RateControl:
    """One site's state. Times are seconds of the boot clock."""

    limits: SiteLimits
    sharers: int = 1
    slots: int = 0
    running: int = 0
    late: int = 0
    """How many of those that run take long: they wait for the site, and count towards no slot."""

    clean: int = 0
    failures: int = 0
    refusals: int = 0
    """How often in a row the relay refused us."""

    closed_until: float = 0.0
    held_until: float = 0.0
    crowded_at: float = float("-inf")
    next_start: float = 0.0
    rate: float | None = None
    rate_changed: float = 0.0
    refused_at: float = 0.0
    taken: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW_KEPT))

    def __post_init__(self) -> None:
        self.slots = self._part(self.limits.start)

    @property
    def most(self) -> int:
        """Slots of this process at the most."""
        return self._part(self.limits.most)

    def _part(self, slots: int) -> int:
        return max(1, slots // self.sharers) if self.limits.is_shared else slots

    def share(self, sharers: int) -> None:
        """Take the share of one of so many processes that serve the site. What one that ends leaves is grown
        into, not taken at once."""
        self.sharers = sharers
        self.slots = min(self.slots, self.most)

    @property
    def has_capacity(self) -> bool:
        return self.running - min(self.late, self.most) < self.slots

    def opens_at(self) -> float:
        """Return the time before which nothing more may be started."""
        return max(self.closed_until, self.next_start)

    def begin(self, now: float) -> None:
        """Note that one mail is started."""
        self.running += 1
        if self.rate is not None:
            self.next_start = max(now, self.next_start) + 1 / self.rate

    def end(self, signal: SiteSignal, now: float) -> bool:
        """Note that one mail is over; return True when the site was just found to be out of reach."""
        self.running -= 1
        if signal is SiteSignal.CLEAN:
            self._succeed(now)
        elif signal is SiteSignal.SLOW:
            self._slow_down(now)
        elif signal is SiteSignal.CROWDED:
            self.slots = max(1, min(self.slots, self.running + 1) // 2)
            self._hold(now)
            self.next_start = max(self.next_start, now + CROWDED_PAUSE)
        elif signal is SiteSignal.STARVED:
            self.slots = max(1, min(self.slots, self.running + 1) // 2)
            self.next_start = max(self.next_start, now + CROWDED_PAUSE)
        elif signal is SiteSignal.UNREACHABLE:
            return self._fail(now)
        elif signal is SiteSignal.HELD:
            return self._refused(now)
        return False

    def is_held(self, now: float) -> bool:
        """Return whether nothing is to be tried because the relay refuses us."""
        return self.refusals > 0 and now < self.closed_until

    def is_refused(self, now: float) -> bool:
        """Return whether the relay refuses us, as far as is known: until a mail gets through, or until no
        mail has asked for a while."""
        return self.refusals > 0 and (self.running > 0 or now < self.closed_until + REFUSED_MARGIN)

    def apply_signal(self, signal: SiteSignal, closed_until: float, rate: float | None, now: float) -> None:
        """Go on as another process does that got this signal from the site."""
        if signal is SiteSignal.SLOW and rate is not None and (self.rate is None or rate < self.rate):
            self.rate = rate
            self.rate_changed = self.refused_at = now
        elif signal is SiteSignal.CROWDED and now - self.crowded_at > CROWDED_PAUSE:
            self.slots = max(1, self.slots // 2)
            self._hold(now)
        elif signal is SiteSignal.UNREACHABLE and closed_until > now:
            self.closed_until = max(self.closed_until, closed_until + PROBE_LEAD)
            self.slots = 1
            self.clean = 0
            self.failures = max(self.failures, BREAK_AFTER - 1)

    def _hold(self, now: float) -> None:
        """Do not grow for a while."""
        self.held_until = now + HOLD_SECONDS
        self.crowded_at = now

    def _succeed(self, now: float) -> None:
        self.failures = 0
        if self.refusals:
            self.refusals = 0
            self.slots = max(self.slots, self._part(self.limits.start))
        self.taken.append(now)
        self.clean += 1
        if self.clean >= GROW_AFTER and now >= self.held_until and self.slots < self.most:
            self.slots += 1
            self.clean = 0
        if self.rate is not None and now - self.rate_changed >= SETTLE_SECONDS:
            self.rate *= CAREFUL_GROWTH if now - self.refused_at < CAREFUL_SECONDS else FAST_GROWTH
            self.rate_changed = now
            if self.rate > HIGHEST_RATE:
                self.rate = None

    def _slow_down(self, now: float) -> None:
        """Go on a little below what was taken lately; refusals of one burst count once."""
        if now < self.next_start and now - self.rate_changed < SLOW_PAUSE:
            return
        lately = [at for at in self.taken if now - at <= WINDOW_SECONDS]
        span = max(1.0, min(WINDOW_SECONDS, now - lately[0])) if lately else WINDOW_SECONDS
        measured = len(lately) / span if lately else (self.rate or 2 * FIRST_RATE) / 2
        wanted = measured if self.rate is None else min(self.rate, measured)
        self.rate = max(LOWEST_RATE, wanted * RATE_MARGIN)
        self.rate_changed = self.refused_at = now
        self.next_start = max(self.next_start, now + SLOW_PAUSE)

    def _fail(self, now: float) -> bool:
        self.failures += 1
        if self.failures < BREAK_AFTER or now < self.closed_until:
            return False
        self.slots = 1
        self.clean = 0
        self.closed_until = now + BREAK_SECONDS
        return True

    def _refused(self, now: float) -> bool:
        """Close the site after a refusal; return False where it is closed already. All that is under way ends
        the same way, so only the first of them counts."""
        if now < self.closed_until:
            return False
        self.slots = 1
        self.clean = 0
        self.closed_until = now + HOLDS[min(self.refusals, len(HOLDS) - 1)]
        self.refusals += 1
        return True
