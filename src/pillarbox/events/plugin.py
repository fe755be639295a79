"""What events bring to the program."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.events.distribution import LIMIT, Distribution, EventReceiver
from pillarbox.events.lanes import JOB
from pillarbox.kernel.slices import Kit, Slice
from pillarbox.kernel.work.jobs import Handler


def _jobs(kit: Kit) -> Mapping[str, Handler]:
    receiver: EventReceiver | None = kit.find(EventReceiver)  # type: ignore[type-abstract]
    return {JOB: Distribution(kit.engine_pool, kit.clock, receiver).run}


SLICE = Slice(
    name="events",
    jobs=_jobs,
    job_limits=lambda _: [LIMIT],
)
