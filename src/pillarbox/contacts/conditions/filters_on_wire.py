"""Filters of contacts as requests give them (contacts.md section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from pillarbox.contacts.conditions.language import Condition, EveryCondition, FactComparison, FactField
from pillarbox.kernel.wire.problems import InvalidParameter

LONGEST_SEARCH: Final = 200
MOST_WORDS: Final = 5


def words_of(search: str | None, name: str) -> str | None:
    """Return the words to look for, None where there are none."""
    words = (search or "").split()
    if len(search or "") > LONGEST_SEARCH or len(words) > MOST_WORDS:
        raise InvalidParameter(name, f"Use at most {MOST_WORDS} words and {LONGEST_SEARCH} characters.")
    return " ".join(words) or None


def condition_in_segment(
    condition: Condition | None, segment_id: UUID | None, conditions: Mapping[UUID, Condition]
) -> Condition | None:
    """Return the condition that a contact is in the segment as well; `conditions` are those of segments that
    have some."""
    if segment_id is None:
        return condition
    is_in = conditions.get(segment_id) or FactComparison(FactField("segments", str(segment_id)), "eq", True)
    return is_in if condition is None else EveryCondition((condition, is_in))
