"""The parts of the slice for searching: routes, and the periodic job that keeps the blocks."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.inboxes.search import routes
from pillarbox.inboxes.search.blocks import MessageBlocks, search_periodic
from pillarbox.inboxes.search.invariants import INVARIANTS as INVARIANTS
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Container
from pillarbox.kernel.work.periodic import Periodic


def periodic(kit: Container) -> Sequence[Periodic]:
    return search_periodic(MessageBlocks(kit.pool, kit.need(Ids)))


ROUTES = collect(routes)
