"""The parts of the slice for requests that wait for changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pillarbox.inboxes.waiting.waiters import Waiters
from pillarbox.kernel.slices import Background, Container, StartOrder, Stop


def background(kit: Container) -> Sequence[Background]:
    waiters = kit.need(Waiters)
    return [
        Background(
            (StartOrder.WAITERS, waiters.start), waiters.close, (Stop.WAITERS, lambda _: waiters.stop())
        )
    ]


PROVIDES: Mapping[type, Callable[[Container], object]] = {
    Waiters: lambda kit: Waiters(kit.pool, kit.settings.database_url or "")
}
