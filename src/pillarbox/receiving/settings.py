"""The settings of receiving."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

INBOUND_REQUIRE_DNS = Setting(
    name="inbound_require_dns",
    parse=kinds.switch,
    shape="BOOL",
    default="true",
    meaning="Whether a domain receives only after DNS showed its MX; `false` is for closed networks and "
    "tests.",
)

REJECT_DMARC_FAIL = Setting(
    name="reject_dmarc_fail",
    parse=kinds.switch,
    shape="BOOL",
    default="false",
    meaning="Refuse mail that fails DMARC where the domain of its author asks for that; else it is kept as "
    "spam.",
)

RSPAMD_URL = Setting(
    name="rspamd_url",
    parse=kinds.optional(kinds.public_url),
    shape="URL",
    default="off",
    meaning="An rspamd worker that says what is spam, such as `http://127.0.0.1:11333`; `off`: DMARC alone "
    "says it.",
)

RECEIVED_RETENTION_DAYS = Setting(
    name="received_retention_days",
    parse=kinds.whole_number(0, 36500),
    shape="DAYS",
    default="0",
    meaning="For how many days received mail is kept; 0 keeps it.",
)

RECEIVED_STORAGE = Setting(
    name="received_storage",
    parse=kinds.size,
    shape="SIZE",
    default="0",
    meaning="How much received mail one team may have, such as `10GiB`; beyond it senders are put off, but "
    "for mail to postmaster and abuse. 0 is no limit.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    INBOUND_REQUIRE_DNS,
    REJECT_DMARC_FAIL,
    RSPAMD_URL,
    RECEIVED_RETENTION_DAYS,
    RECEIVED_STORAGE,
)
