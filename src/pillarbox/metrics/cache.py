"""Answers that may be given again for a while, if the operator wants it (contract decision 19).

The key is the team and the question as it was understood, but for the present: a hit is the stored body,
byte for byte, with the dates that it was made for.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from uuid import UUID

MOST_BYTES = 4 * 1024 * 1024
ENTRY, TEXT = 1024, 64
"""What an entry and a text take beside their octets."""

Question = tuple[tuple[str, ...], ...]
"""For each parameter its texts."""
Key = tuple[UUID, Question]


class Cache:
    """Bodies by team and question; bounded in bytes, the oldest go first. A question is its parameters, which
    may be longer than the answer."""

    def __init__(self, seconds: int) -> None:
        self._lifetime = timedelta(seconds=seconds)
        self._entries: OrderedDict[Key, tuple[datetime, bytes]] = OrderedDict()
        self._size = 0

    @property
    def is_used(self) -> bool:
        """Whether the operator wants it."""
        return bool(self._lifetime)

    def get(self, team_id: UUID, question: Question, now: datetime) -> bytes | None:
        """The body of an earlier answer that is still young enough."""
        found = self._entries.get((team_id, question))
        if found is None:
            return None
        made, body = found
        if now - made < self._lifetime:
            return body
        self._remove((team_id, question))
        return None

    def put(self, team_id: UUID, question: Question, now: datetime, body: bytes) -> None:
        """Keep a body, where a life time is set."""
        key = (team_id, question)
        if not self._lifetime or _weight(key, body) > MOST_BYTES:
            return
        self._remove(key)
        self._entries[key] = (now, body)
        self._size += _weight(key, body)
        while self._size > MOST_BYTES:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: Key) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self._size -= _weight(key, found[1])


def _weight(key: Key, body: bytes) -> int:
    """What keeping it costs, about."""
    texts = [text for parameter in key[1] for text in parameter]
    return len(body) + ENTRY + sum(map(len, texts)) + TEXT * len(texts)
