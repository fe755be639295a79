"""The settings of toys."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting
from pillarbox.kernel.settings.settings import ConfigError, Settings

TOY_COLOUR = Setting(
    name="toy_colour",
    parse=kinds.one_of("red", "blue"),
    shape="COLOUR",
    default="red",
    meaning="Which colour toys are painted in.",
    secret=True,
)

TOY_DAYS = Setting(
    name="toy_days",
    parse=kinds.whole_number(0, 36500),
    shape="DAYS",
    default="7",
    meaning="For how many days toys are kept; 0 keeps them.",
)

SETTINGS: tuple[Setting[Any], ...] = (TOY_COLOUR, TOY_DAYS)


def refuse_wrong(settings: Settings) -> None:
    """Raise ConfigError for blue toys that are kept for good."""
    if settings[TOY_COLOUR] == "blue" and settings[TOY_DAYS] == 0:
        raise ConfigError("--toy-colour blue needs --toy-days.")
