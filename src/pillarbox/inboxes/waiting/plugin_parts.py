"""What waiting for changes brings to the slice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pillarbox.inboxes.waiting.waiters import Waiters
from pillarbox.kernel.slices import Background, Kit, Start, Stop


def background(kit: Kit) -> Sequence[Background]:
    waiters = kit.need(Waiters)
    return [
        Background((Start.WAITERS, waiters.start), waiters.close, (Stop.WAITERS, lambda _: waiters.stop()))
    ]


PROVIDES: Mapping[type, Callable[[Kit], object]] = {
    Waiters: lambda kit: Waiters(kit.pool, kit.settings.database_url or "")
}
