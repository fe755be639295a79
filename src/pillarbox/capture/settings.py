"""The settings of capture."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

CAPTURE_LIMIT = Setting(
    name="capture_limit",
    parse=kinds.size,
    shape="SIZE",
    default="1GiB",
    meaning="How much captured mail is kept; beyond it the oldest mails go.",
)

CAPTURE_NETWORKS = Setting(
    name="capture_networks",
    parse=kinds.networks,
    shape="CIDR[,…]",
    default="none",
    meaning="Networks besides this machine from which captured mail may be read by who has the token.",
)

SETTINGS: tuple[Setting[Any], ...] = (CAPTURE_LIMIT, CAPTURE_NETWORKS)
