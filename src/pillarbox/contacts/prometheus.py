"""Prometheus metrics of contacts (OPS-06)."""

from __future__ import annotations

from pillarbox.contacts.event_data import SHAPES
from pillarbox.kernel.observability.metrics import Counter

CHANGES = Counter(
    "pillarbox_contact_changes",
    "Changes of single contacts that were committed, by their event.",
    ("event",),
    known=[(kind,) for kind in SHAPES],
)
