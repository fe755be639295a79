"""Prometheus metrics of the SMTP listeners (OPS-06)."""

from __future__ import annotations

from pillarbox.kernel.observability.metrics import SECONDS, Counter, Gauge, Histogram

SESSIONS = Gauge("pillarbox_smtp_sessions", "Open SMTP sessions.")
CONNECTIONS = Counter(
    "pillarbox_smtp_connections", "SMTP connections, by whether there was room.", ("outcome",)
)
LOGINS = Counter("pillarbox_smtp_logins", "Logins by SMTP, by the code of the answer.", ("code",))
MESSAGES = Counter(
    "pillarbox_smtp_messages",
    "Messages whose text came by SMTP, by way (submission, inbound or lmtp) and code of the answer "
    "(by LMTP the best one of the message).",
    ("way", "code"),
)
STORING = Histogram(
    "pillarbox_smtp_message_seconds",
    "How long it took to answer the end of a message, by way.",
    SECONDS,
    ("way",),
)
