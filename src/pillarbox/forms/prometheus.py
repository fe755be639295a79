"""Counters of forms."""

from __future__ import annotations

from pillarbox.kernel.observability.metrics import Counter

REQUESTS = Counter(
    "pillarbox_sign_up_requests",
    "Requests of people who sign up, and what became of them.",
    ("outcome",),
    [
        (name,)
        for name in (
            "page",
            "sent",
            "recent",
            "trapped",
            "too_many",
            "unavailable",
            "asked",
            "confirmed",
            "expired",
            "unknown_link",
        )
    ],
)
