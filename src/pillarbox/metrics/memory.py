"""What earlier answers said of periods that are over, for as long as it holds.

This is no cache that may be stale: with every question the versions of the days are read in the snapshot of
its answer, and a piece serves only while all days that it was made of are in the same state. What stands in a
piece beside the counts, and can change, is a part of its key: the names of broadcasts.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.metrics import read, wire
from pillarbox.metrics.periods import Period
from pillarbox.metrics.question import DIMENSIONS, Question
from pillarbox.metrics.read import State
from pillarbox.metrics.wire import NO_NAMES, Names, PeriodRows

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

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
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


async def answer(
    pool: asyncpg.Pool,
    team_id: UUID,
    question: Question,
    found: Sequence[Period],
    memory: PieceCache,
    names: Names = NO_NAMES,
) -> bytes:
    """The answer to a question; what is known of its periods is not counted again."""
    spans = read.spans(question, found)
    if spans is None:
        return wire.answer(question, found, await read.rows(pool, team_id, question, found), names)
    keys = _keys(team_id, question, found, spans, names)
    kept = list(map(memory.find, keys))
    known = [None if one is None else one.state for one in kept]
    table, asked, states = await read.changed(pool, team_id, question, found, known)
    made = wire.pieces(question, found, table, asked, names)
    ids = len(question.domains) + len(question.broadcasts)
    for at, piece in made.items():
        state = states[at]
        if state is not None:
            memory.put(keys[at], CachedPiece(state, piece, ids))
    return wire.assembled(
        question, [made[at] if one is None or at in made else one.piece for at, one in enumerate(kept)]
    )


def _keys(
    team_id: UUID,
    question: Question,
    found: Sequence[Period],
    spans: Sequence[tuple[datetime, datetime]],
    names: Names,
) -> list[Key]:
    """All that a piece depends on, but for the counts."""
    shape = (
        team_id,
        question.metrics,
        tuple(name for name in DIMENSIONS if question.by(name)),
        question.domains,
        question.broadcasts,
        _digest(names),
    )
    return [(shape, period.label, *span) for period, span in zip(found, spans, strict=True)]


def _digest(names: Names) -> bytes:
    """Names of broadcasts may change at any time; a piece with other names is another piece."""
    whole = "\0".join(part for pair in sorted(names.items()) for part in pair)
    return hashlib.sha256(whole.encode()).digest() if names else b""
