"""Prometheus metrics of OAuth (OPS-06)."""

from __future__ import annotations

from typing import Final

from pillarbox.kernel.observability.metrics import Counter

ISSUED: Final = "issued"
VERIFIED: Final = "verified"
REFUSED: Final = "refused"

TOKENS = Counter(
    "pillarbox_oauth_tokens",
    "Requests of programs for tokens, by what they got: tokens, or which error.",
    ("outcome",),
    [
        (ISSUED,),
        *(
            (error,)
            for error in (
                "invalid_request",
                "invalid_client",
                "invalid_grant",
                "invalid_scope",
                "unauthorized_client",
                "unsupported_grant_type",
                "too_many_requests",
            )
        ),
    ],
)
ACCESS_TOKENS = Counter(
    "pillarbox_oauth_access_tokens",
    "Access tokens at the API whose signature was looked at, and requests that were refused for theirs.",
    ("outcome",),
    [(VERIFIED,), (REFUSED,)],
)
