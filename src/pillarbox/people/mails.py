"""Mail of this installation to people: links for a lost password, invitations."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from pillarbox.kernel.postgres.database import Connection


class SystemMail(Protocol):
    """Sends to one person; the slice of emails provides it, so that this mail is one of the ordinary engine.

    With the route capture it is in the capture view. It is one of the oldest team, the operator's.
    """

    async def send(self, conn: Connection, now: datetime, *, to: str, subject: str, text: str) -> None:
        """Accept this mail in the transaction of `conn`: it goes out if that is committed. Raises where no
        mail can be taken for now."""
        ...
