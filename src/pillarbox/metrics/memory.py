"""What earlier answers said of periods that are over, for as long as it holds.

This is no cache that may be stale: with every question the versions of the days are read in the snapshot of
its answer. A piece serves only while all days that it was made of are in the same state. What stands in a
piece beside the counts, and can change, is a part of its key: the names of broadcasts.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from pillarbox.metrics.read import State
from pillarbox.metrics.wire import PeriodRows

MOST_BYTES = 8 * 1024 * 1024
"""Of one process: ten answers of a month of fifty domains."""
ENTRY, ID = 1024, 128
"""What a piece takes beside its text, and what an id or a version of its key and its state takes."""

Key = tuple[object, ...]


class CachedPiece(NamedTuple):
    """A piece, and the state of its days when it was made; `ids` are how many ids its key has."""

    state: State
    piece: PeriodRows
    ids: int = 0


class PieceCache:
    """Pieces of answers, bounded in bytes; the least recently used are removed first."""

    def __init__(self, limit: int = MOST_BYTES) -> None:
        self._most = limit
        self._pieces: OrderedDict[Key, CachedPiece] = OrderedDict()
        self._size = 0

    def find(self, key: Key) -> CachedPiece | None:
        """What is kept under that key."""
        found = self._pieces.get(key)
        if found is not None:
            self._pieces.move_to_end(key)
        return found

    def put(self, key: Key, kept: CachedPiece) -> None:
        """Keep it instead of what is there."""
        before = self._pieces.pop(key, None)
        self._size += _weight(kept) - (0 if before is None else _weight(before))
        self._pieces[key] = kept
        while self._size > self._most:
            self._size -= _weight(self._pieces.popitem(last=False)[1])


def _weight(kept: CachedPiece) -> int:
    return ENTRY + len(kept.piece.text) + ID * (kept.ids + len(kept.state))
