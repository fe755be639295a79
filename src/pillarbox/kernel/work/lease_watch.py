"""When the leases of a process have really run out (DUR-09).

Leases end at an instant of wall time, and wall time may jump: after a step of an hour ahead all leases of all
processes look as if they had ended long ago. To somebody whose clock is wrong they do so for ever, or never
end. But a running holder renews its leases, so the ends of its leases move. A holder is lost when the
earliest end is over and has not moved for longer than the interval of renewals. It is lost as well when that
end has not moved for the length of a lease. Both are measured on a clock that never jumps, and begin anew
after an outage of the database: holders could not renew in it either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import OUTAGES


class HeldLeases(NamedTuple):
    """The leases of one process: when the first of them ends, and when the last."""

    owner: UUID
    first: datetime
    last: datetime


class LostLeases(NamedTuple):
    """Leases of a holder that went silent: all that end at `until` or before."""

    owner: UUID
    until: datetime


class _StillLeases(NamedTuple):
    """Since when (boot time) the first lease has stood still, and the last one that there was then."""

    first: datetime
    last: datetime
    since: float


class LeaseWatch:
    """Remembers how leases looked. `lease` and `renewed_every` are seconds."""

    def __init__(self, lease: float, renewed_every: float) -> None:
        self._lease = lease
        self._confirm = renewed_every * 1.25
        self._still: dict[UUID, _StillLeases] = {}

    def lost(self, holdings: Iterable[HeldLeases], now: datetime, boottime: float) -> list[LostLeases]:
        """Return the leases that are lost, of all that are held; call it again and again."""
        self._still = {holding.owner: self._seen(holding, boottime) for holding in holdings}
        return [
            LostLeases(owner, still.last)
            for owner, still in self._still.items()
            if self._is_silent(boottime - still.since, still.first < now)
        ]

    @contextmanager
    def restarting(self) -> Iterator[None]:
        """Count anew since when leases stand still where this look fails for an outage."""
        try:
            yield
        except OUTAGES:
            self._still = {}
            raise

    def _seen(self, holding: HeldLeases, boottime: float) -> _StillLeases:
        before = self._still.get(holding.owner)
        if before is not None and before.first == holding.first:
            return before
        return _StillLeases(holding.first, holding.last, boottime)

    def _is_silent(self, seconds: float, is_over: bool) -> bool:
        return seconds >= self._lease or (is_over and seconds >= self._confirm)
