"""Prometheus metrics of tracking (OPS-06)."""

from __future__ import annotations

from pillarbox.kernel.observability.metrics import Counter

REQUESTS = Counter(
    "pillarbox_tracking_requests",
    "Requests at links and pictures of tracked mail, by what they were.",
    ("what",),
    known=[(what,) for what in ("open", "click", "head", "unknown")],
)

EVENTS = Counter(
    "pillarbox_tracking_events",
    "Opens and clicks by what became of their events: recorded (those of machines apart), of an email that "
    "was removed or not delivered, too many of a recipient at once, or lost without the database.",
    ("what",),
    known=[(what,) for what in ("recorded", "by_machine", "without_delivery", "too_many", "lost")],
)
