"""The settings of OAuth."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

OAUTH_CIMD_ENABLED = Setting(
    name="oauth_cimd_enabled",
    parse=kinds.switch,
    shape="BOOL",
    default="true",
    meaning="Whether programs may be described by a document of their own site (client ID metadata "
    "document), which is fetched from there, instead of being registered.",
)

OAUTH_CIMD_HOSTS = Setting(
    name="oauth_cimd_hosts",
    parse=kinds.domains,
    shape="HOST[,…]",
    default="none",
    meaning="The only hosts whose documents describe programs; `none`: all hosts but the refused ones.",
)

OAUTH_CIMD_REFUSED_HOSTS = Setting(
    name="oauth_cimd_refused_hosts",
    parse=kinds.domains,
    shape="HOST[,…]",
    default="none",
    meaning="Hosts whose documents describe no programs.",
)

OAUTH_REFRESH_REUSE_GRACE_SECONDS = Setting(
    name="oauth_refresh_reuse_grace_seconds",
    parse=kinds.whole_number(0, 300),
    shape="SECONDS",
    default="0",
    meaning="For how long after its use a refresh token may be presented once more without the grant being "
    "revoked; it is refused all the same.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    OAUTH_CIMD_ENABLED,
    OAUTH_CIMD_HOSTS,
    OAUTH_CIMD_REFUSED_HOSTS,
    OAUTH_REFRESH_REUSE_GRACE_SECONDS,
)
