"""A setting as one row, from which its flag, variables, check and line of the guide are made.

A slice keeps its rows in its `settings.py` and names them in its manifest; those of the kernel stand in
`table.py`. A row is also the key to its value: `settings[WEBHOOKS_RETRIES]`, with the type that its `parse`
answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)

PREFIX = "PILLARBOX_"


@dataclass(frozen=True, slots=True)
class Setting(Generic[T_co]):
    """One setting. `default` is text like the operator's; None is computed or absent, and then `otherwise`
    says in words what holds. The type of one that may be absent includes None, and is annotated."""

    name: str
    parse: Callable[[str], T_co]
    shape: str
    default: str | None
    meaning: str
    otherwise: str = ""
    secret: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def env(self) -> str:
        return PREFIX + self.name.upper()
