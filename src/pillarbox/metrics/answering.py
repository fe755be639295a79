"""Answers a question from the known counts of its periods, and counts the rest.

Each period is looked for in the memory of the process, then among the stored pieces, and is counted where
neither has it. A period that was found is checked against the versions of its days in the snapshot of the
answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from uuid import UUID

import asyncpg

from pillarbox.metrics import read, wire
from pillarbox.metrics.memory import CachedPiece, Key, PieceCache
from pillarbox.metrics.periods import Period
from pillarbox.metrics.question import DIMENSIONS, MetricsQuery
from pillarbox.metrics.stored import NewPiece, PieceStore, piece_ids
from pillarbox.metrics.wire import NO_NAMES, Names, PeriodRows, PeriodText

Later = Callable[[Callable[[], None]], object]


def at_once(task: Callable[[], None]) -> None:
    """Run the task now."""
    task()


async def answer(
    pool: asyncpg.Pool,
    team_id: UUID,
    question: MetricsQuery,
    periods: Sequence[Period],
    memory: PieceCache,
    names: Names = NO_NAMES,
    store: PieceStore | None = None,
    later: Later = at_once,
) -> bytes:
    """Return the answer to a question; known periods are not counted again. New counts are kept by a function
    that is given to `later`: the caller need not wait for it."""
    spans = read.spans(question, periods)
    if spans is None:
        return wire.answer(question, periods, await read.rows(pool, team_id, question, periods), names)
    shape = _shape(team_id, question, names)
    labelled = [(period.label, *span) for period, span in zip(periods, spans, strict=True)]
    keys: list[Key] = [(shape, *period) for period in labelled]
    kept = list(map(memory.find, keys))
    places = [] if store is None or None not in kept else piece_ids(shape, labelled)
    stored = {} if store is None else await _stored(store, team_id, places, kept)
    for at, one in stored.items():
        kept[at] = one
    known = [None if one is None else one.state for one in kept]
    table, asked, states = await read.changed(pool, team_id, question, periods, known)
    made = wire.texts(question, periods, table, asked, names)
    old = {at: one.piece for at, one in enumerate(kept) if one is not None and at not in made}
    texts: dict[int, PeriodText | PeriodRows] = {**made, **old}
    body = wire.assembled(question, table, list(old.values()), [texts[at] for at in range(len(periods))])

    def keep() -> None:
        ids = len(question.domains) + len(question.broadcasts)
        sums = wire.counts(table, asked)
        new = {
            at: CachedPiece(state, PeriodRows(*text, sums[at]), ids)
            for at, text in made.items()
            if (state := states[at]) is not None
        }
        proved = {at: one._replace(ids=ids) for at, one in stored.items() if at not in made}
        for at, one in (*proved.items(), *new.items()):
            memory.put(keys[at], one)
        if store is not None and new:
            ids_of = places or piece_ids(shape, labelled)
            store.offer(team_id, [NewPiece(ids_of[at], spans[at][0], *one[:2]) for at, one in new.items()])

    later(keep)
    return body


async def _stored(
    store: PieceStore, team_id: UUID, places: Sequence[UUID], kept: Sequence[CachedPiece | None]
) -> dict[int, CachedPiece]:
    """Return the stored pieces of the periods of which the process knows nothing."""
    missing = {places[at]: at for at, one in enumerate(kept) if one is None}
    if not missing:
        return {}
    found = await store.find(team_id, list(missing))
    return {missing[place]: one for place, one in found.items()}


def _shape(team_id: UUID, question: MetricsQuery, names: Names) -> Key:
    """Return all that a piece depends on, but for its period and the counts."""
    return (
        team_id,
        question.metrics,
        tuple(name for name in DIMENSIONS if question.by(name)),
        question.domains,
        question.broadcasts,
        _digest(names),
    )


def _digest(names: Names) -> bytes:
    """Return the digest of the names of broadcasts. They may change at any time; a piece with other names is
    another piece."""
    whole = "\0".join(part for pair in sorted(names.items()) for part in pair)
    return hashlib.sha256(whole.encode()).digest() if names else b""
