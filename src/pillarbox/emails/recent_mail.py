"""Whether mail is being accepted, by any process of the installation: background work gives way to it.

What this process accepts is known at once. What others accept is known from a count that PostgreSQL keeps of
the rows that were inserted into `contents`, within a second or two: each email that is accepted has one, and
all copies of a broadcast share one. Where the tables are distributed the count stands on other servers, and
only this process's mail is known.
"""

from __future__ import annotations

from typing import Final

from pillarbox.emails import overview_queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Connection

LOOK_EVERY: Final = 0.25
QUIET_AFTER: Final = 2.5
"""Seconds without mail. PostgreSQL's sessions tell what they inserted once a second."""


class RecentMail:
    """Knows whether mail was accepted within the last seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._mail_at = float("-inf")
        self._looked_at = float("-inf")
        self._inserted = 0

    def note(self) -> None:
        """Note that this process has accepted mail."""
        self._mail_at = self._clock.boottime()

    async def is_coming(self, conn: Connection) -> bool:
        """Return whether mail was accepted within the last seconds; asks the database a few times
        a second."""
        now = self._clock.boottime()
        if now - self._looked_at >= LOOK_EVERY:
            inserted = await overview_queries.inserted_contents(conn)
            # A count from long ago says nothing of the last seconds.
            if now - self._looked_at < QUIET_AFTER and inserted != self._inserted:
                self._mail_at = now
            self._inserted, self._looked_at = inserted, now
        return now - self._mail_at < QUIET_AFTER
