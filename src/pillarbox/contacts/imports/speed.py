"""How fast an import goes: as fast as it can, and at about a quarter of that while mail is accepted."""

from __future__ import annotations

from typing import Final

from pillarbox.contacts.imports.batches import MOST_ROWS
from pillarbox.emails.recent_mail import RecentMail
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Connection

FEW_ROWS: Final = 500
"""Rows of a batch while mail is accepted: some 15 ms of a processor at a time."""

REST: Final = 3.0
"""While mail is accepted the import rests so many times as long as its last batch took."""

LONGEST_REST: Final = 0.5
"""Seconds. A batch that waited for a lock or for the disk is not waited for once more."""


class ImportSpeed:
    """The speed of one import: mail comes first, and never stops it."""

    def __init__(self, mail: RecentMail, clock: Clock) -> None:
        self._mail = mail
        self._clock = clock
        self._is_slow = False

    async def rows(self, conn: Connection) -> int:
        """Return how many rows the next batch shall have."""
        self._is_slow = await self._mail.is_coming(conn)
        return FEW_ROWS if self._is_slow else MOST_ROWS

    async def rest(self, began: float) -> None:
        """Leave the processors to others after a batch that began then."""
        if self._is_slow and (took := self._clock.boottime() - began) > 0:
            await self._clock.sleep(min(took * REST, LONGEST_REST))
