"""Prometheus metrics of events (OPS-06)."""

from __future__ import annotations

from pillarbox.kernel.observability.metrics import SECONDS, Counter, Histogram

ACCEPTED = Counter("pillarbox_events_accepted", "Events that were accepted.")
DISTRIBUTED = Counter(
    "pillarbox_events_distributed",
    "Events that left their partition, by what became of them.",
    ("outcome",),
    [("told",), ("unheard",), ("contact_deleted",), ("failed",)],
)
WAITED = Histogram(
    "pillarbox_event_wait_seconds",
    "How long events waited until they were distributed.",
    SECONDS,
)
