"""Prometheus metrics of the suppression list (OPS-06)."""

from __future__ import annotations

from pillarbox.kernel.observability.metrics import Counter

ENTRIES = Counter(
    "pillarbox_suppressions",
    "Entries of suppression lists that were added and removed, by their origin.",
    ("change", "origin"),
    known=[
        (change, origin) for change in ("added", "removed") for origin in ("bounce", "complaint", "manual")
    ],
)
