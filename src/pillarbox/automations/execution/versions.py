"""Graphs of versions, remembered: a version never changes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final
from uuid import UUID

from pillarbox.automations.execution import state_queries
from pillarbox.automations.graphs.graph import Graph
from pillarbox.kernel.postgres.database import TeamDb

MOST_OCTETS: Final = 16 * 1024 * 1024
"""Of the JSON of all graphs that are remembered together."""

Key = tuple[UUID, UUID, int]


class VersionMissingError(LookupError):
    """A run names a version that is not there."""


class GraphVersions:
    """The graphs that were used last."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, tuple[Graph, int]] = OrderedDict()
        self._octets = 0

    async def graph(self, db: TeamDb, automation_id: UUID, version: int) -> Graph:
        """Return the graph of a version; VersionMissingError where there is none."""
        key = (db.team_id, automation_id, version)
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known[0]
        stored = await state_queries.version(db, automation_id, version)
        if stored is None:
            raise VersionMissingError(f"{automation_id}, version {version}")
        found = await stored.graph()
        self._remember(key, found, stored.octets)
        return found

    def _remember(self, key: Key, graph: Graph, octets: int) -> None:
        if key not in self._known:
            self._known[key] = graph, octets
            self._octets += octets
        while self._octets > MOST_OCTETS and len(self._known) > 1:
            _, (_, dropped) = self._known.popitem(last=False)
            self._octets -= dropped
