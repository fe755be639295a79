"""The levels of the rollups, and what stands in their keys.

Folding adds to all levels in one statement, so they differ only where something else went wrong. Answers come
from every level, so `rebuilding` compares hours, UTC days and ten-second rollups with the quarter hours too.
"""

from __future__ import annotations

from uuid import UUID

FINE, QUARTER, HOUR, DAY = 0, 1, 2, 3
NAMES = {FINE: "ten seconds", QUARTER: "quarter hour", HOUR: "hour", DAY: "day"}

NOBODY = UUID(int=0)
"""Stands in a rollup's key for mail without a domain of ours, and for mail of no broadcast."""
