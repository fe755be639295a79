"""What broadcasts bring to the program."""

from __future__ import annotations

from pillarbox.broadcasts import routes
from pillarbox.broadcasts.copying import Copying
from pillarbox.broadcasts.start import LIMIT, Start
from pillarbox.broadcasts.store import Broadcasts
from pillarbox.delivery.copies import Copies
from pillarbox.delivery.plugin import DeliveryNotifier
from pillarbox.delivery.queue.queue_limit import QueueLimit
from pillarbox.emails.broadcast_copies.making import MakingCopies
from pillarbox.emails.permitted_senders import PermittedSenders
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Kit, Slice
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.kernel.work.jobs import Jobs
from pillarbox.usage.quotas import Quotas


def _broadcasts(kit: Kit) -> Broadcasts:
    def wake() -> None:
        # Not before: jobs need parts that are built later.
        kit.need(Jobs).wake()

    return Broadcasts(kit.need(Ids), kit.need(PermittedSenders), kit.need(Quotas), wake)


def _start(kit: Kit) -> Start:
    return Start(
        kit.pool,
        kit.need(Ids),
        kit.need(PermittedSenders),
        kit.need(Quotas),
        kit.need(DeliveryNotifier).notify,
    )


def _copies(kit: Kit) -> Copies:
    disks, queue = kit.need(DiskSpace), kit.need(QueueLimit)

    def admits() -> None:
        disks.check()
        queue.check()

    copying = Copying(kit.engine_pool, kit.clock, kit.need(MakingCopies), admits)
    return Copies(copying.make, copying.judge)


SLICE = Slice(
    name="broadcasts",
    provides={Broadcasts: _broadcasts, Start: _start, Copies: _copies},
    routes=collect(routes),
    jobs=lambda kit: kit.need(Start).handlers(),
    job_limits=lambda _: [LIMIT],
)
