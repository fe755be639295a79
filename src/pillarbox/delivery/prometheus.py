"""The counters of the delivery engine for Prometheus (OPS-06)."""

from __future__ import annotations

from collections.abc import Iterable

from pillarbox.delivery.reports import AttemptSettlement
from pillarbox.kernel.observability.metrics import GREATEST, Counter, Gauge
from pillarbox.timeline.rules import EventKind

KINDS = (
    EventKind.DELIVERED,
    EventKind.BOUNCED,
    EventKind.DELIVERY_DELAYED,
    EventKind.FAILED,
    EventKind.SUPPRESSED,
)

OUTCOMES = Counter(
    "pillarbox_delivery_outcomes",
    "Recipients by what became of them in an attempt.",
    ("outcome",),
    [(kind.value,) for kind in KINDS],
)
UNCERTAIN = Counter(
    "pillarbox_delivery_uncertain",
    "Attempts of emails that an earlier attempt may have delivered already.",
)
LEASES_LOST = Counter(
    "pillarbox_delivery_leases_lost", "Attempts given up before the final dot because the lease was over."
)
LEASES_RECOVERED = Counter(
    "pillarbox_delivery_leases_recovered", "Work items taken from processes that ended or went silent."
)
QUARANTINED = Counter("pillarbox_delivery_quarantined", "Work items put aside because they end processes.")
MTA_STS = Counter(
    "pillarbox_delivery_mta_sts",
    "What came of MTA-STS policies: `policy` (fetched, not fetched), and sessions by the policy's mode.",
    ("mode", "result"),
)
ITEMS_IN_MEMORY = Gauge("pillarbox_delivery_items_in_memory", "Work items in the memory of the processes.")
QUEUE = Gauge(
    "pillarbox_queue_items",
    "Work items in the database: due, waiting, leased, held, paused, quarantined. Estimated beyond 50,000.",
    ("state",),
)
QUEUE_OLDEST = Gauge(
    "pillarbox_queue_oldest_seconds",
    "Age of the oldest work item in each state since it was accepted.",
    ("state",),
)
QUEUE_LAG = Gauge(
    "pillarbox_queue_lag_seconds", "For how long the work item has been due that waits longest to be taken."
)

DESTINATION_OLDEST = Gauge(
    "pillarbox_queue_destination_oldest_seconds",
    "For how long mail has waited since it was first tried or due: the ten destinations that have waited "
    "longest and more than five minutes, and (others) together.",
    ("destination",),
)
DESTINATION_ITEMS = Gauge(
    "pillarbox_queue_destination_items",
    "Work items that have waited so long, by destination.",
    ("destination",),
)
SMARTHOST_HELD = Gauge(
    "pillarbox_delivery_smarthost_held",
    "1 while the smarthost refuses us and all mail for it waits, else 0.",
    over=GREATEST,
)

COUNTED = {kind: (kind.value,) for kind in KINDS}


def settled(batch: Iterable[AttemptSettlement]) -> None:
    """Count a batch of outcomes that is committed."""
    for settlement in batch:
        if settlement.item.uncertain and settlement.report is not None:
            UNCERTAIN.add()
        for entry in settlement.entries:
            labels = COUNTED.get(entry.kind)
            if labels is not None:
                OUTCOMES.add(1, labels)
