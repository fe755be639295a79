"""The settings of emails."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.kinds import RouteKind
from pillarbox.kernel.settings.setting import Setting
from pillarbox.kernel.settings.settings import Settings

REQUIRE_VERIFIED_DOMAIN = Setting(
    name="require_verified_domain",
    parse=kinds.one_of("auto", "always", "never"),
    shape="WHEN",
    default="auto",
    meaning="Whether the sender's domain must be verified; `auto`: except with the route `capture`.",
)

REJECT_RESERVED_RECIPIENTS = Setting(
    name="reject_reserved_recipients",
    parse=kinds.switch,
    shape="BOOL",
    default="false",
    meaning="Refuse recipients at reserved domains such as example.com.",
)

BODY_RETENTION_DAYS = Setting(
    name="body_retention_days",
    parse=kinds.whole_number(0, 36500),
    shape="DAYS",
    default="0",
    meaning="For how many days after its last event an email's html, text and attachments are kept; 0 "
    "keeps them as long as the email.",
)

ORPHAN_BLOB_DAYS = Setting(
    name="orphan_blob_days",
    parse=kinds.whole_number(0, 36500),
    shape="DAYS",
    default="1",
    meaning="For how many days blobs are kept that nothing in the database names (what a crash left "
    "behind); 0 keeps them.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    REQUIRE_VERIFIED_DOMAIN,
    REJECT_RESERVED_RECIPIENTS,
    BODY_RETENTION_DAYS,
    ORPHAN_BLOB_DAYS,
)


def verified_domain_required(settings: Settings) -> bool:
    """Return the setting `require_verified_domain` with `auto` decided (contract decision 21)."""
    when = settings[REQUIRE_VERIFIED_DOMAIN]
    if when == "auto":
        return settings.route.kind is not RouteKind.CAPTURE
    return when == "always"
