"""The slice of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pillarbox.events import routes
from pillarbox.events.distribution import LIMIT, Distribution, EventReceiver
from pillarbox.events.invariants import INVARIANTS
from pillarbox.events.partitions import JOB
from pillarbox.events.personal_data import PERSONAL_DATA
from pillarbox.events.retention import FAILED_KEPT, EventRetention
from pillarbox.events.sending import EventSender
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Background, Container, Retention, RetentionItem, Slice, Stop
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.kernel.work.jobs import EndingHandler, Handler, Jobs


def _sending(kit: Container) -> EventSender:
    def wake() -> None:
        # Not before: jobs need parts that are built later.
        kit.need(Jobs).wake()

    return EventSender(kit.engine_pool, kit.need(Ids), kit.need(DiskSpace).check, wake)


def _jobs(kit: Container) -> Mapping[str, Handler]:
    return handlers(kit, kit.find(EventReceiver))  # type: ignore[type-abstract]


def handlers(kit: Container, receiver: EventReceiver | None) -> Mapping[str, Handler]:
    """Distribute events to this receiver."""
    distribution = Distribution(kit.engine_pool, kit.clock, receiver)
    return {JOB: EndingHandler(distribution.run, distribution.give_up)}


def _background(kit: Container) -> Sequence[Background]:
    sending = kit.need(EventSender)
    return [Background(stop=(Stop.COMMITS, lambda _: sending.drain()))]


SLICE = Slice(
    name="events",
    provides={EventSender: _sending},
    routes=collect(routes),
    jobs=_jobs,
    job_limits=lambda _: [LIMIT],
    background=_background,
    retention=[
        Retention(
            [RetentionItem("events that could not be distributed", FAILED_KEPT)],
            lambda kit: EventRetention(kit.pool, kit.clock).periodic(),
        )
    ],
    invariants=INVARIANTS,
    personal_data=PERSONAL_DATA,
)
