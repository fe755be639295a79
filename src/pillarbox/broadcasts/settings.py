"""The settings of broadcasts."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.kinds import WrongValue
from pillarbox.kernel.settings.setting import Setting

_PERCENT = re.compile(r"\d{1,3}(\.\d{1,4})?", re.ASCII)


def percent(text: str) -> Fraction:
    """Return a number from 0 to 100, exactly."""
    if not _PERCENT.fullmatch(text) or (found := Fraction(text)) > 100:
        raise WrongValue("is not a number from 0 to 100, such as 0.3")
    return found


BROADCAST_BOUNCE_LIMIT = Setting(
    name="broadcast_bounce_limit",
    parse=percent,
    shape="PERCENT",
    default="5",
    meaning="The share of bounced copies, of all that were sent, above which a broadcast stops until "
    "somebody lets it go on; 0 never stops it.",
)

BROADCAST_COMPLAINT_LIMIT = Setting(
    name="broadcast_complaint_limit",
    parse=percent,
    shape="PERCENT",
    default="0.3",
    meaning="The share of complaints, of all copies that were delivered, above which a broadcast stops until "
    "somebody lets it go on; 0 never stops it.",
)

BROADCAST_LIMITS_AFTER = Setting(
    name="broadcast_limits_after",
    parse=kinds.whole_number(1, 1_000_000_000),
    shape="COUNT",
    default="500",
    meaning="How many copies of a broadcast are sent before its bounces and complaints can stop it.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    BROADCAST_BOUNCE_LIMIT,
    BROADCAST_COMPLAINT_LIMIT,
    BROADCAST_LIMITS_AFTER,
)
