"""The settings of the SMTP servers."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

SMTP_LOGIN_NEEDS_TLS = Setting(
    name="smtp_login_needs_tls",
    parse=kinds.switch,
    shape="BOOL",
    default="true",
    meaning="Whether AUTH is offered under TLS alone; `false` is for tests on loopback, where nobody "
    "listens.",
)

SMTP_SESSIONS = Setting(
    name="smtp_sessions",
    parse=kinds.whole_number(1, 1_000_000),
    shape="N",
    default="2000",
    meaning="How many SMTP sessions there may be at once, divided by the processes.",
)

SMTP_CLIENT_SESSIONS = Setting(
    name="smtp_client_sessions",
    parse=kinds.optional(kinds.whole_number(1, 1_000_000)),
    shape="N",
    default="20",
    meaning="How many of them one client may have (an IPv4 address, or 64 bits of IPv6); or `off`.",
)

SMTP_CLIENT_RATE = Setting(
    name="smtp_client_rate",
    parse=kinds.optional(kinds.whole_number(1, 10_000_000)),
    shape="N",
    default="600",
    meaning="How many SMTP connections one client may open in a minute; or `off`.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    SMTP_LOGIN_NEEDS_TLS,
    SMTP_SESSIONS,
    SMTP_CLIENT_SESSIONS,
    SMTP_CLIENT_RATE,
)
