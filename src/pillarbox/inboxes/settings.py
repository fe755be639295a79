"""The settings of inboxes."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

MOST_INBOXES = Setting(
    name="most_inboxes",
    parse=kinds.whole_number(0, 1_000_000),
    shape="N",
    default="1000",
    meaning="How many inboxes a team may have. What exists stays.",
)

SETTINGS: tuple[Setting[Any], ...] = (MOST_INBOXES,)
