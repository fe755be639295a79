"""Prometheus metrics of links to unsubscribe (OPS-06)."""

from __future__ import annotations

from pillarbox.kernel.observability.metrics import Counter
from pillarbox.unsubscribe.forms import UnsubscribeAction

REFUSED = ("unknown_link", "not_understood", "too_many")

REQUESTS = Counter(
    "pillarbox_unsubscribe_requests",
    "Requests at links to unsubscribe, by what was done or why nothing was.",
    ("what",),
    known=[(what,) for what in ("page", *(action.value for action in UnsubscribeAction), *REFUSED)],
)
