"""When a lease has really run out (DUR-09).

Leases end at an instant of wall time, and wall time may jump: after a step of an hour ahead all leases of all
processes look as if they had ended long ago. Another process whose clock is wrong sees them so all the time.
One that was given by a clock ahead ends too late, by a year perhaps, and shows it: no lease is that long. But
a holder that lives renews, and then `leased_until` changes. So a lease counts as lost only when it is over,
or too long, and has stood unchanged. It must have done so for as long as its holder trusts it, on a clock
that never jumps. That time runs from when a renewal is overdue, not from when the lease is over, so a death
costs little more than the lease. Time in which the database took no writes does not count: its holder has the
outcome of a mail that went out, and stores it as soon as it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

LEASE: Final = timedelta(seconds=15)
RENEW_EVERY: Final = 5.0
MARGIN: Final = 5.0
"""Seconds before the end of its lease at which the holder no longer trusts it."""

CONFIRM_SECONDS: Final = LEASE.total_seconds() - MARGIN
"""As long as a holder trusts a lease that is renewed no more: whatever the wall clocks say, it stopped."""

OVERDUE: Final = timedelta(seconds=LEASE.total_seconds() - RENEW_EVERY - 1)
"""A lease that ends within this time should have been renewed a second ago."""


class Lease(NamedTuple):
    """A lease that is over, overdue for renewal, or too long."""

    team_id: UUID
    email_id: UUID
    grp: int
    leased_until: datetime


class LeaseExpiry:
    """Keeps since when leases have stood still."""

    def __init__(self) -> None:
        self._since: dict[Lease, float] = {}

    def restart(self) -> None:
        """Begin to count anew: this process could not write, so holders could not renew or settle either."""
        self._since = {}

    def lost(self, suspects: Sequence[Lease], now: datetime, boottime: float) -> list[Lease]:
        """Return the leases that are over, or too long, and have been suspect, unchanged,
        for `CONFIRM_SECONDS`."""
        self._since = {lease: self._since.get(lease, boottime) for lease in suspects}
        return [
            lease
            for lease, since in self._since.items()
            if boottime - since >= CONFIRM_SECONDS and not now <= lease.leased_until <= now + OVERDUE
        ]
