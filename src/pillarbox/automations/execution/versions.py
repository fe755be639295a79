"""Graphs of versions, remembered: a version never changes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final
from uuid import UUID

from pillarbox.automations.execution import state_queries
from pillarbox.automations.graphs.graph import Graph
from pillarbox.automations.queries import graph_of
from pillarbox.kernel.postgres.database import TeamDb

MOST_STEPS: Final = 10_000
"""Of all graphs that are remembered together."""

Key = tuple[UUID, UUID, int]


class VersionMissingError(LookupError):
    """A run names a version that is not there."""


class Versions:
    """The graphs that were used last."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, Graph] = OrderedDict()
        self._steps = 0

    async def graph(self, db: TeamDb, automation_id: UUID, version: int) -> Graph:
        """The graph of a version; VersionMissingError where there is none."""
        key = (db.team_id, automation_id, version)
        found = self._known.get(key)
        if found is None:
            stored = await state_queries.version(db, automation_id, version)
            if stored is None:
                raise VersionMissingError(f"{automation_id}, version {version}")
            found = graph_of(*stored)
            self._remember(key, found)
        else:
            self._known.move_to_end(key)
        return found

    def _remember(self, key: Key, graph: Graph) -> None:
        if key not in self._known:
            self._known[key] = graph
            self._steps += len(graph.steps)
        while self._steps > MOST_STEPS and len(self._known) > 1:
            _, dropped = self._known.popitem(last=False)
            self._steps -= len(dropped.steps)
