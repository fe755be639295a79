"""Prometheus metrics of templates (OPS-06)."""

from __future__ import annotations

from pillarbox.kernel.observability.metrics import Counter

CHANGES = Counter(
    "pillarbox_template_changes",
    "Changes of templates that were committed, by what they did.",
    ("change",),
    known=[("created",), ("changed",), ("published",), ("deleted",)],
)
