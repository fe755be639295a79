"""What broadcasts bring to the program."""

from __future__ import annotations

from pillarbox.broadcasts import routes
from pillarbox.broadcasts.start import LIMIT, Start
from pillarbox.broadcasts.store import Broadcasts
from pillarbox.delivery.plugin import DeliveryNotifier
from pillarbox.emails.permitted_senders import PermittedSenders
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Kit, Slice
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


SLICE = Slice(
    name="broadcasts",
    provides={Broadcasts: _broadcasts, Start: _start},
    routes=collect(routes),
    jobs=lambda kit: kit.need(Start).handlers(),
    job_limits=lambda _: [LIMIT],
)
