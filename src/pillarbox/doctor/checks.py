"""The result of one check."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct


class Level(Enum):
    """`problem`: mail is lost, stuck or refused because of it. `warning`: it works, but not well or not for
    long. `skipped`: it does not apply here, or could not be looked at."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


ROUTE_UNKNOWN = "no server runs, and `doctor` was not told its route"


class Check(Struct, frozen=True):
    """`name` is for programs and never changes its meaning; the rest is for people."""

    name: str
    level: Level
    title: str
    found: str
    expected: str | None = None
    step: str | None = None


def is_healthy(checks: Iterable[Check]) -> bool:
    """Return whether none of the checks found a problem."""
    return all(check.level is not Level.PROBLEM for check in checks)
