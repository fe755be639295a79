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
            "erased",
            "trapped",
            "too_many",
            "closed",
            "unavailable",
            "asked",
            "confirmed",
            "expired",
            "unknown_link",
        )
    ],
)
