"""A statement about the rows that must always hold; `pillarbox verify` asks for what breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Invariant:
    """`sql` finds what breaks it, `sentence` says so of one row; `args` start at `$2`."""

    name: str
    sentence: str
    sql: str
    args: tuple[Any, ...] = ()
