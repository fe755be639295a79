"""The colour that goes with a state. Every state is said in words as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

QUIET: Final = "quiet"

TONES: Final[Mapping[str, str]] = {
    "delivered": "good",
    "opened": "good",
    "clicked": "good",
    "verified": "good",
    "enabled": "good",
    "success": "good",
    "active": "good",
    "received": "good",
    "completed": "good",
    "sent": "info",
    "running": "info",
    "waiting": "info",
    "queued": "info",
    "scheduled": "info",
    "pending": "info",
    "retrying": "warn",
    "attempting": "warn",
    "delivery_delayed": "warn",
    "suppressed": "warn",
    "partially_verified": "warn",
    "partially_failed": "warn",
    "temporary_failure": "warn",
    "bounced": "bad",
    "complained": "bad",
    "failed": "bad",
    "blocked": "bad",
}
"""Good, bad, warn or info, by the word on the wire; other states are quiet."""


def tone_of(state: str) -> str:
    """Return the class of the style sheet for a state."""
    return TONES.get(state, QUIET)
