"""Caches earlier answers of this process: pieces of them always, whole answers if the operator wants it.

Pieces say what was counted in periods that are over, and are never stale: with every question the versions of
the days are read in the snapshot of its answer. A piece serves only while all days that it was made of are in
the same state. A piece also has the names of broadcasts, which can change, so they are a part of its key.

A whole answer (contract decision 19) is given again byte for byte, with the dates that it was made for. Its
key is the team and the question as it was understood, but for the present.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from pillarbox.metrics.read import State
from pillarbox.metrics.wire import PeriodRows

MOST_PIECE_BYTES = 8 * 1024 * 1024
"""Of one process: ten answers of a month of fifty domains."""
MOST_ANSWER_BYTES = 4 * 1024 * 1024
ENTRY, ID, TEXT = 1024, 128, 64
"""Octets counted for an entry beside its text, an id or version of a piece, and a text of a question."""

Key = tuple[object, ...]
Question = tuple[tuple[str, ...], ...]
"""For each parameter its texts."""

V = TypeVar("V")


class BoundedCache(Generic[V]):
    """Values bounded in bytes, keys included; the least recently used are removed first."""

    def __init__(self, limit: int, weight: Callable[[Key, V], int]) -> None:
        self._limit = limit
        self._weight = weight
        self._values: OrderedDict[Key, V] = OrderedDict()
        self._size = 0

    def find(self, key: Key) -> V | None:
        """Return the value of that key."""
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
        return found

    def put(self, key: Key, value: V) -> None:
        """Replace the value of the key, unless the new one alone is too large."""
        self.remove(key)
        weight = self._weight(key, value)
        if weight > self._limit:
            return
        self._values[key] = value
        self._size += weight
        while self._size > self._limit:
            self.remove(next(iter(self._values)))

    def remove(self, key: Key) -> None:
        """Remove the value of that key."""
        found = self._values.pop(key, None)
        if found is not None:
            self._size -= self._weight(key, found)


class CachedPiece(NamedTuple):
    """A piece, and the state of its days when it was made; `ids` are how many ids its key has."""

    state: State
    piece: PeriodRows
    ids: int = 0


class PieceCache(BoundedCache[CachedPiece]):
    """Pieces of answers."""

    def __init__(self, limit: int = MOST_PIECE_BYTES) -> None:
        super().__init__(limit, _piece_weight)


class AnswerCache:
    """Whole answers by team and question, for so many seconds; with 0 none is kept."""

    def __init__(self, seconds: int) -> None:
        self._lifetime = timedelta(seconds=seconds)
        self._answers: BoundedCache[tuple[datetime, bytes]] = BoundedCache(MOST_ANSWER_BYTES, _answer_weight)

    @property
    def is_used(self) -> bool:
        """Whether the operator wants it."""
        return bool(self._lifetime)

    def get(self, team_id: UUID, question: Question, now: datetime) -> bytes | None:
        """Return the body of an earlier answer that is still young enough."""
        found = self._answers.find((team_id, question))
        if found is None:
            return None
        made, body = found
        if now - made < self._lifetime:
            return body
        self._answers.remove((team_id, question))
        return None

    def put(self, team_id: UUID, question: Question, now: datetime, body: bytes) -> None:
        """Keep a body, where a life time is set."""
        if self.is_used:
            self._answers.put((team_id, question), (now, body))


def _piece_weight(_: Key, cached: CachedPiece) -> int:
    return ENTRY + len(cached.piece.text) + ID * (cached.ids + len(cached.state))


def _answer_weight(key: Key, answer: tuple[datetime, bytes]) -> int:
    """Return the weight of an answer; the question's texts count too, since they may be longer than
    the answer."""
    texts = [text for parameter in key[1] for text in parameter]  # type: ignore[attr-defined]
    return len(answer[1]) + ENTRY + sum(map(len, texts)) + TEXT * len(texts)
