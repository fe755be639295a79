"""The settings of capture."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

CAPTURE_LIMIT = Setting(
    "capture_limit",
    kinds.size,
    "SIZE",
    "1GiB",
    "How much captured mail is kept; beyond it the oldest mails go.",
)

CAPTURE_NETWORKS = Setting(
    "capture_networks",
    kinds.networks,
    "CIDR[,…]",
    "none",
    "Networks besides this machine from which captured mail may be read by who has the token.",
)

SETTINGS: tuple[Setting[Any], ...] = (CAPTURE_LIMIT, CAPTURE_NETWORKS)
