"""Prometheus metrics of people (OPS-06)."""

from __future__ import annotations

from pillarbox.kernel.observability.metrics import Counter

ACTS = Counter(
    "pillarbox_acts",
    "Entries of the log of acts, by what was done.",
    ("what",),
)
