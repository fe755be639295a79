"""Graphs in the columns of their versions. A large one is read in a thread: it may take half a second."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pillarbox.automations.graphs import normal, parsing
from pillarbox.automations.graphs.graph import Graph
from pillarbox.kernel.process.offload import in_thread_if_large

_decode = msgspec.json.Decoder().decode
_pieces = msgspec.json.Decoder(list[msgspec.Raw]).decode


class StoredGraph(NamedTuple):
    """JSON in the form in which graphs are shown; two graphs are equal where it is."""

    steps: str
    connections: str

    @property
    def octets(self) -> int:
        return len(self.steps) + len(self.connections)

    async def graph(self) -> Graph:
        return await in_thread_if_large(self.octets, graph_of, self)


def graph_of(stored: StoredGraph) -> Graph:
    """Return the graph; each step is decoded by itself, so that others run in between."""
    steps = [_decode(one) for one in _pieces(stored.steps)]
    found = parsing.graph(steps, _decode(stored.connections))
    # Remembered with the graph: to count its rules later would take the time of the event loop.
    _ = found.is_heavy, found.has_heavy_filters
    return found


def stored(graph: Graph) -> StoredGraph:
    steps = ",".join([msgspec.json.encode(one).decode() for one in normal.steps(graph)])
    return StoredGraph(f"[{steps}]", msgspec.json.encode(normal.connections(graph)).decode())
