"""Prometheus metrics of reports (OPS-06)."""

from __future__ import annotations

from pillarbox.kernel.observability.metrics import Counter

REPORTS = Counter(
    "pillarbox_reports",
    "Mail to return paths and to the feedback address, by what became of it.",
    ("outcome",),
)
