"""The settings of webhooks."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

WEBHOOKS_ALLOW_HTTP = Setting(
    name="webhooks_allow_http",
    parse=kinds.switch,
    shape="BOOL",
    default="false",
    meaning="Whether webhooks may have `http` endpoints; anybody on the way can then read what they are "
    "sent.",
)

WEBHOOKS_ALLOWED_PORTS = Setting(
    name="webhooks_allowed_ports",
    parse=kinds.ports,
    shape="PORT[,…]",
    default="any",
    meaning="Ports that webhooks may call; `any`: all but those of mail servers (25, 465, 587).",
)

WEBHOOKS_RETENTION_DAYS = Setting(
    name="webhooks_retention_days",
    parse=kinds.whole_number(0, 36500),
    shape="DAYS",
    default="90",
    meaning="For how many days the events, deliveries and answers of webhooks are kept; 0 keeps them.",
)

WEBHOOKS_RETRIES = Setting(
    name="webhooks_retries",
    parse=kinds.each(kinds.duration),
    shape="DURATION[,…]",
    default="5s,5m,30m,2h,5h,10h,10h",
    meaning="How long a delivery to a webhook waits after each failed attempt; after the last one it has "
    "failed.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    WEBHOOKS_ALLOW_HTTP,
    WEBHOOKS_ALLOWED_PORTS,
    WEBHOOKS_RETENTION_DAYS,
    WEBHOOKS_RETRIES,
)
