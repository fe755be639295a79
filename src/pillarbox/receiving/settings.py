"""The settings of receiving."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

INBOUND_REQUIRE_DNS = Setting(
    "inbound_require_dns",
    kinds.switch,
    "BOOL",
    "true",
    "Whether a domain receives only after DNS showed its MX; `false` is for closed networks and tests.",
)

REJECT_DMARC_FAIL = Setting(
    "reject_dmarc_fail",
    kinds.switch,
    "BOOL",
    "false",
    "Refuse mail that fails DMARC where the domain of its author asks for that; else it is kept as spam.",
)

RSPAMD_URL = Setting(
    "rspamd_url",
    kinds.optional(kinds.public_url),
    "URL",
    "off",
    "An rspamd worker that says what is spam, such as `http://127.0.0.1:11333`; `off`: DMARC alone says it.",
)

RECEIVED_RETENTION_DAYS = Setting(
    "received_retention_days",
    kinds.whole_number(0, 36500),
    "DAYS",
    "0",
    "For how many days received mail is kept; 0 keeps it.",
)

RECEIVED_STORAGE = Setting(
    "received_storage",
    kinds.size,
    "SIZE",
    "0",
    "How much received mail one team may have, such as `10GiB`; beyond it senders are put off, but for "
    "mail to postmaster and abuse. 0 is no limit.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    INBOUND_REQUIRE_DNS,
    REJECT_DMARC_FAIL,
    RSPAMD_URL,
    RECEIVED_RETENTION_DAYS,
    RECEIVED_STORAGE,
)
