"""The settings of OAuth."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

OAUTH_CIMD_ENABLED = Setting(
    "oauth_cimd_enabled",
    kinds.switch,
    "BOOL",
    "true",
    "Whether programs may be described by a document of their own site (client ID metadata document), which "
    "is fetched from there, instead of being registered.",
)

OAUTH_CIMD_HOSTS = Setting(
    "oauth_cimd_hosts",
    kinds.domains,
    "HOST[,…]",
    "none",
    "The only hosts whose documents describe programs; `none`: all hosts but the refused ones.",
)

OAUTH_CIMD_REFUSED_HOSTS = Setting(
    "oauth_cimd_refused_hosts",
    kinds.domains,
    "HOST[,…]",
    "none",
    "Hosts whose documents describe no programs.",
)

OAUTH_REFRESH_REUSE_GRACE_SECONDS = Setting(
    "oauth_refresh_reuse_grace_seconds",
    kinds.whole_number(0, 300),
    "SECONDS",
    "0",
    "For how long after its use a refresh token may be presented once more without the grant being revoked; "
    "it is refused all the same.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    OAUTH_CIMD_ENABLED,
    OAUTH_CIMD_HOSTS,
    OAUTH_CIMD_REFUSED_HOSTS,
    OAUTH_REFRESH_REUSE_GRACE_SECONDS,
)
