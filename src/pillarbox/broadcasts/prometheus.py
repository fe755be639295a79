"""Prometheus metrics of broadcasts (OPS-06)."""

from __future__ import annotations

from pillarbox.kernel.observability.metrics import Counter

ENDED = Counter(
    "pillarbox_broadcasts",
    "Broadcasts that ended.",
    ("status",),
    [("sent",), ("canceled",), ("failed",)],
)
PAUSED = Counter(
    "pillarbox_broadcasts_paused",
    "Broadcasts that stopped by themselves because of bounces or complaints.",
)
RECIPIENTS = Counter(
    "pillarbox_broadcast_recipients",
    "Recipients of broadcasts that began.",
)
