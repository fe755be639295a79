"""The settings of teams: what holds for a team that has no number of its own (`pillarbox teams set`)."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

MOST_DOMAINS = Setting(
    name="most_domains",
    parse=kinds.optional(kinds.whole_number(1, 1_000_000)),
    shape="N",
    default="off",
    meaning="How many domains a team may have; or `off`.",
)

MOST_WEBHOOKS = Setting(
    name="most_webhooks",
    parse=kinds.whole_number(0, 500),
    shape="N",
    default="50",
    meaning="How many webhooks a team may have: each event is a delivery to each of them. What exists stays.",
)

MOST_API_KEYS = Setting(
    name="most_api_keys",
    parse=kinds.whole_number(0, 100_000),
    shape="N",
    default="1000",
    meaning="How many API keys a team may have. What exists stays.",
)

EMAIL_RETENTION_DAYS = Setting(
    name="email_retention_days",
    parse=kinds.whole_number(0, 36500),
    shape="DAYS",
    default="0",
    meaning="For how many days after its last event an email is kept, with its recipients, history, "
    "content and attachments; 0 keeps it.",
)

LOG_RETENTION_DAYS = Setting(
    name="log_retention_days",
    parse=kinds.whole_number(0, 36500),
    shape="DAYS",
    default="30",
    meaning="For how many days the log of API requests is kept; 0: no log.",
)

METRICS_RETENTION_DAYS = Setting(
    name="metrics_retention_days",
    parse=kinds.whole_number(0, 36500),
    shape="DAYS",
    default="0",
    meaning="For how many UTC days the numbers of `GET /emails/metrics` are kept (those of broadcasts "
    "always); 0 keeps them.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    MOST_DOMAINS,
    MOST_WEBHOOKS,
    MOST_API_KEYS,
    EMAIL_RETENTION_DAYS,
    LOG_RETENTION_DAYS,
    METRICS_RETENTION_DAYS,
)
