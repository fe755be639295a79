"""How many lists with the filter `query` are read at once in a process.

A text that nearly no thread has is looked for in the subjects of all of them. In a long inbox that takes the
database a second and more, so a few are looked for at a time, teams take turns, and each is answered: all of
them together would take so long that none is. A short inbox is read at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

from pillarbox.inboxes.threads import list_queries
from pillarbox.inboxes.threads.list_filter import ThreadFilter
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.team_turns import IsGone, TeamTurns

AT_ONCE: Final = 2
SHORT: Final = 5000
"""Threads of a folder that are read without waiting."""
REFUSAL: Final = "Too many texts are being looked for in long inboxes. Try again in a moment."


class TextScans:
    """The turns of lists that look for a text."""

    def __init__(self) -> None:
        self._turns = TeamTurns(AT_ONCE, REFUSAL)

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return self._turns.waiting

    @asynccontextmanager
    async def turn(
        self, db: TeamDb, inbox_id: UUID, wanted: ThreadFilter, is_gone: IsGone
    ) -> AsyncIterator[None]:
        """Read such a list inside. Raises Overloaded, and ClientGone for who has left."""
        if wanted.text is None or not await list_queries.has_more_than(db, inbox_id, wanted.classes, SHORT):
            yield
            return
        async with self._turns.of(db.team_id, 1, is_gone):
            yield
