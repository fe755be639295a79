"""The page docs/guide/retention.md, made from what the slices say that they delete with age."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from pillarbox.kernel.slices import RetentionItem, Slice

HEAD = """# What is deleted with age

<!-- Made by script/docs from the field `retention` of the slices (`plugin.py`): change those. -->

What grows goes after a time. Where a setting says how long, it is a number of days, and 0 keeps it for good
(0 days of the log are no log); where a team may have its own, `pillarbox teams set` gives it.
[queue-and-retention.md](queue-and-retention.md#retention) says how it goes.

| What | Kept for |
|---|---|
"""

WITHOUT_AGE = """
Captured mail goes by size: beyond `--capture-limit` the oldest go. Policies of MTA-STS go when they expire.
"""

UNITS = (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1)))


def retention_page(slices: Iterable[Slice]) -> str:
    """Return the whole page."""
    kept = [one for brought in slices for retention in brought.retention for one in retention.kept]
    return HEAD + "".join(row(one) for one in kept) + WITHOUT_AGE


def row(kept: RetentionItem) -> str:
    return f"| {kept.what} | {length_of(kept)} |\n"


def length_of(kept: RetentionItem) -> str:
    """Return the length, such as `2 days`, or the setting with its default."""
    if not isinstance(kept.length, timedelta):
        own = "; a team may have its own" if kept.per_team else ""
        return f"`{kept.length.flag}` (default {kept.length.default}{own})"
    for unit, length in UNITS:
        number, rest = divmod(kept.length, length)
        if number and not rest:
            return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    raise ValueError(f"{kept.what}: {kept.length} is no number of minutes")
