"""The operator's settings for the metrics, and the parts that other slices hand to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.metrics.memory import AnswerCache, PieceCache
from pillarbox.metrics.stored import PieceStore


async def _no_names(db: TeamDb, ids: Sequence[UUID]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class BroadcastNames:
    """The names of broadcasts that have one, by their ids as text: of these broadcasts, or of all of a
    team."""

    of: Callable[[TeamDb, Sequence[UUID]], Awaitable[Mapping[str, str]]] = _no_names


@dataclass(frozen=True, slots=True)
class MetricsPolicy:
    """`retention_days` 0: rollups are kept for ever. `memory` and `store` are no settings: they change no
    answer. Without triggers on rollups there is no store."""

    retention_days: int
    cache: AnswerCache
    memory: PieceCache = field(default_factory=PieceCache)
    names: BroadcastNames = field(default_factory=BroadcastNames)
    store: PieceStore | None = None
