"""The terms of a contact: each three characters in a row of its address and names, as a number.

A number has the team in it, so those of other teams are not met.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID
from zlib import crc32

LENGTH: Final = 3
MOST_TERMS: Final = 300
"""Terms of one contact; what is behind them is found where it is among the newest contacts alone."""

OFFSET: Final = 1 << 31


def terms_of(team_id: UUID, *texts: str | None) -> list[int]:
    """Return the terms of these texts, each once, in ascending order."""
    seed = crc32(team_id.bytes)
    found: set[int] = set()
    for text in texts:
        if text:
            lower = text.lower()
            pieces = {lower[start : start + LENGTH] for start in range(len(lower) - LENGTH + 1)}
            found.update([crc32(piece.encode("utf-8", "replace"), seed) - OFFSET for piece in pieces])
    return sorted(found)[:MOST_TERMS]


def terms_to_find(team_id: UUID, search: str) -> list[int]:
    """Return the terms that a contact with all of these words has; empty where the words are too short."""
    return terms_of(team_id, *search.split())
