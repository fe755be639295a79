"""When a lease has really run out (DUR-09).

Leases end at an instant of wall time, and wall time may jump: after a step of an hour ahead all leases of
all processes look as if they had ended long ago, and another process whose clock is wrong sees them so all
the time. One that was given by a clock ahead ends too late, by a year perhaps, and shows it: no lease is
that long. But a holder that lives renews, and then `leased_until` changes. So a lease counts as lost only
when it has looked expired, or too long, unchanged, for longer than the renewals are apart, on a clock that
never jumps. Time in which the database took no writes does not count: its holder has the outcome of a mail
that went out, and stores it as soon as it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

CONFIRM_SECONDS = 12.0
"""Longer than the time between two renewals of a holder."""


class Lease(NamedTuple):
    """A lease that looks expired."""

    team_id: UUID
    email_id: UUID
    grp: int
    leased_until: datetime


class LeaseExpiry:
    """Keeps since when leases look expired."""

    def __init__(self) -> None:
        self._since: dict[Lease, float] = {}

    def restart(self) -> None:
        """Begin to count anew: this process could not write, so holders could not renew or settle either."""
        self._since = {}

    def lost(self, expired: Sequence[Lease], boottime: float) -> list[Lease]:
        """The leases that look expired now and have looked so, unchanged, for `CONFIRM_SECONDS`."""
        self._since = {lease: self._since.get(lease, boottime) for lease in expired}
        return [lease for lease, since in self._since.items() if boottime - since >= CONFIRM_SECONDS]
