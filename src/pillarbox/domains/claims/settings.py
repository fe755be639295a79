"""The settings of claims."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

CLAIM_GRACE = Setting(
    "claim_grace",
    kinds.optional(kinds.duration),
    "DURATION",
    "7d",
    "How long a domain cannot be claimed by another team after it was verified or claimed; or `off`.",
)

CLAIM_QUIET = Setting(
    "claim_quiet",
    kinds.optional(kinds.duration),
    "DURATION",
    "24h",
    "How long its owner must have sent nothing from a domain before another team gets it; or `off`.",
)

CLAIM_SCHEDULED = Setting(
    "claim_scheduled",
    kinds.switch,
    "BOOL",
    "true",
    "Whether scheduled mail of its owner keeps a domain from another team that claims it.",
)

CLAIM_TOKEN_PREFIX = Setting(
    "claim_token_prefix",
    kinds.txt_key,
    "NAME",
    "pillarbox-domain-verification",
    "Name in the TXT record that proves a claim.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    CLAIM_GRACE,
    CLAIM_QUIET,
    CLAIM_SCHEDULED,
    CLAIM_TOKEN_PREFIX,
)
