"""The settings of delivery."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

REMOTE_SMTP_PORT = Setting(
    name="remote_smtp_port",
    parse=kinds.whole_number(1, 65535),
    shape="PORT",
    default="25",
    meaning="Port that the route `direct` connects to (for tests).",
)

MTA_STS = Setting(
    name="mta_sts",
    parse=kinds.switch,
    shape="BOOL",
    default="true",
    meaning="Whether the route `direct` follows the MTA-STS policies of recipients' domains.",
)

DELIVERY_WINDOW = Setting(
    name="delivery_window",
    parse=kinds.duration,
    shape="DURATION",
    default="96h",
    meaning="How long after the first attempt delivery is tried.",
)

QUEUE_LIMIT = Setting(
    name="queue_limit",
    parse=kinds.whole_number(0, 1_000_000_000),
    shape="NUMBER",
    default="5000000",
    meaning="New mail is refused with 503 while about so many deliveries wait, and no copies of broadcasts "
    "are made from 80 % of it on; 0 is no limit.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    REMOTE_SMTP_PORT,
    MTA_STS,
    DELIVERY_WINDOW,
    QUEUE_LIMIT,
)
