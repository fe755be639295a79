"""Prometheus metrics of inboxes (OPS-06)."""

from __future__ import annotations

from pillarbox.kernel.observability.metrics import Counter, Gauge

CHANGES = Counter(
    "pillarbox_inbox_changes",
    "Inboxes that were created, changed or deleted, by what was done.",
    ("change",),
    known=[("created",), ("changed",), ("deleted",)],
)

REMOVED = Counter(
    "pillarbox_inbox_removed_rows",
    "Messages, threads and drafts of deleted inboxes that were removed.",
    ("what",),
    known=[("messages",), ("threads",), ("drafts",)],
)

WAITING = Gauge("pillarbox_inbox_waiting_requests", "Requests that wait for an inbox to change.")
