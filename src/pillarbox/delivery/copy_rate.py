"""How many copies of broadcasts a process starts beside other mail."""

from __future__ import annotations

from typing import Final

LATE: Final = 0.003
"""Seconds that the event loop may be late by: what else this process does comes first."""

SLOWEST: Final = 25.0
"""Copies a second that are started however late the loop is."""

FASTER: Final = 25.0
"""How many more a second after each second in which the loop was never late."""

SLOWER: Final = 0.75
"""The part of them that is left each time that it was."""


class CopyRate:
    """Copies a second, as many as leave the event loop punctual (docs/decisions/0127)."""

    def __init__(self) -> None:
        self._rate = SLOWEST

    def copies(self, passed: float, planned: float, *, all_started: bool = True) -> float:
        """How many copies may be started for the seconds that passed, where so many were planned. A rate that
        was not reached, since not all were started that might be, says nothing and stays."""
        if passed - planned > LATE:
            self._rate = max(SLOWEST, self._rate * SLOWER)
        elif all_started:
            self._rate += FASTER * planned
        return self._rate * passed
