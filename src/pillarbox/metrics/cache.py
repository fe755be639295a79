"""Answers that may be given again for a while, where the operator wants it (metrics.md 2, decision 19).

The key is the team and the question as it was understood, but for the present: a hit is the stored body,
byte for byte, with the dates that it was made for.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

MOST_BYTES = 4 * 1024 * 1024


class Cache:
    """Bodies by team and question; bounded in bytes, the oldest go first."""

    def __init__(self, seconds: int) -> None:
        self._life = timedelta(seconds=seconds)
        self._kept: OrderedDict[tuple[UUID, Any], tuple[datetime, bytes]] = OrderedDict()
        self._size = 0

    def get(self, team_id: UUID, question: Any, now: datetime) -> bytes | None:
        """The body of an earlier answer that is still young enough."""
        found = self._kept.get((team_id, question))
        if found is None:
            return None
        made, body = found
        if now - made < self._life:
            return body
        self._remove((team_id, question))
        return None

    def put(self, team_id: UUID, question: Any, now: datetime, body: bytes) -> None:
        """Keep a body, where a life time is set."""
        if not self._life or len(body) > MOST_BYTES:
            return
        self._remove((team_id, question))
        self._kept[(team_id, question)] = (now, body)
        self._size += len(body)
        while self._size > MOST_BYTES:
            self._remove(next(iter(self._kept)))

    def _remove(self, key: tuple[UUID, Any]) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._size -= len(found[1])
