"""The settings of inboxes."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

MOST_INBOXES = Setting(
    "most_inboxes",
    kinds.whole_number(0, 1_000_000),
    "N",
    "1000",
    "How many inboxes a team may have. What exists stays.",
)

SETTINGS: tuple[Setting[Any], ...] = (MOST_INBOXES,)
