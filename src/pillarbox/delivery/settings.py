"""The settings of delivery."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

REMOTE_SMTP_PORT = Setting(
    "remote_smtp_port",
    kinds.whole_number(1, 65535),
    "PORT",
    "25",
    "Port that the route `direct` connects to (for tests).",
)

MTA_STS = Setting(
    "mta_sts",
    kinds.switch,
    "BOOL",
    "true",
    "Whether the route `direct` follows the MTA-STS policies of recipients' domains.",
)

DELIVERY_WINDOW = Setting(
    "delivery_window",
    kinds.duration,
    "DURATION",
    "96h",
    "How long after the first attempt delivery is tried.",
)

QUEUE_LIMIT = Setting(
    "queue_limit",
    kinds.whole_number(0, 1_000_000_000),
    "NUMBER",
    "5000000",
    "New mail is refused with 503 while about so many deliveries wait, and no copies of broadcasts are made "
    "from 80 % of it on; 0 is no limit.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    REMOTE_SMTP_PORT,
    MTA_STS,
    DELIVERY_WINDOW,
    QUEUE_LIMIT,
)
