"""The settings of claims."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

CLAIM_GRACE = Setting(
    name="claim_grace",
    parse=kinds.optional(kinds.duration),
    shape="DURATION",
    default="7d",
    meaning="How long a domain cannot be claimed by another team after it was verified or claimed; or `off`.",
)

CLAIM_QUIET = Setting(
    name="claim_quiet",
    parse=kinds.optional(kinds.duration),
    shape="DURATION",
    default="24h",
    meaning="How long its owner must have sent nothing from a domain before another team gets it; or `off`.",
)

CLAIM_SCHEDULED = Setting(
    name="claim_scheduled",
    parse=kinds.switch,
    shape="BOOL",
    default="true",
    meaning="Whether scheduled mail of its owner keeps a domain from another team that claims it.",
)

CLAIM_TOKEN_PREFIX = Setting(
    name="claim_token_prefix",
    parse=kinds.txt_key,
    shape="NAME",
    default="pillarbox-domain-verification",
    meaning="Name in the TXT record that proves a claim.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    CLAIM_GRACE,
    CLAIM_QUIET,
    CLAIM_SCHEDULED,
    CLAIM_TOKEN_PREFIX,
)
