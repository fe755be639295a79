"""The slice of the timeline: the history of each email, and the counts made of it."""

from __future__ import annotations

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Retention, RetentionItem, Slice
from pillarbox.teams.settings import METRICS_RETENTION_DAYS
from pillarbox.timeline.announcing import EmailEventPublisher
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rollups import FINE_FOR, fold_periodic, thin_periodic
from pillarbox.webhooks.publish import Publisher


def timeline_of(clock: Clock) -> Timeline:
    """Return a timeline for commands that change the fate of emails."""
    ids = Ids(clock)
    return Timeline(ids, EmailEventPublisher(Publisher(ids)))


SLICE = Slice(
    name="timeline",
    provides={Timeline: lambda kit: Timeline(kit.need(Ids), EmailEventPublisher(kit.need(Publisher)))},
    periodic=lambda kit: fold_periodic(kit.pool, kit.clock),
    retention=[
        Retention(
            [
                RetentionItem("counts of metrics, but for those of broadcasts", METRICS_RETENTION_DAYS, True),
                RetentionItem("counts of ten seconds, but for those of busy quarter hours", FINE_FOR),
            ],
            lambda kit: thin_periodic(kit.pool, kit.clock, kit.settings[METRICS_RETENTION_DAYS]),
        )
    ],
)
