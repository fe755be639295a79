"""The settings of toys."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

TOY_COLOUR = Setting(
    "toy_colour",
    kinds.one_of("red", "blue"),
    "COLOUR",
    "red",
    "Which colour toys are painted in.",
    secret=True,
)

TOY_DAYS = Setting(
    "toy_days", kinds.whole_number(0, 36500), "DAYS", "7", "For how many days toys are kept; 0 keeps them."
)

SETTINGS: tuple[Setting[Any], ...] = (TOY_COLOUR, TOY_DAYS)
