"""The settings of the kernel: what the supervisor and every process need. Slices have rows of their own."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

KEY_RING_FILE = "secret.key"

RATE_LIMIT = Setting(
    "rate_limit",
    kinds.whole_number(0, 1_000_000),
    "N",
    "10",
    "API requests each second for each team, over all machines; 0 is no limit.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    Setting("data", kinds.folder, "FOLDER", "./pillarbox-data", "Embedded database, blobs, keys."),
    Setting(
        "database_url",
        kinds.database_url,
        "URL",
        None,
        "Any PostgreSQL from version 14 on; behind PgBouncer in session mode alone.",
        "the embedded database",
        secret=True,
    ),
    Setting(
        "database_shards",
        kinds.whole_number(0, 1024),
        "N",
        "0",
        "Experimental: how many shards `distribute.sql` has made of the tables; 0 for an ordinary database.",
    ),
    Setting(
        "blob_url",
        kinds.blob_url,
        "URL",
        None,
        "Where large bodies are kept, for all machines: `file:`, `s3://…`, `gs://…` or `az://…`.",
        "`blobs` under the data folder",
        secret=True,
    ),
    Setting("http", kinds.host_port, "HOST:PORT", "127.0.0.1:8080", "API, dashboard and public pages."),
    Setting(
        "smtp",
        kinds.optional(kinds.host_port),
        "HOST:PORT",
        "127.0.0.1:2525",
        "SMTP from other mail servers, and with AUTH; or `off`.",
    ),
    Setting(
        "submission",
        kinds.submission_listeners,
        "HOST:PORT[,…]",
        "127.0.0.1:2587",
        "SMTP submission with STARTTLS, with the prefix `tls://` implicit TLS; or `off`.",
    ),
    Setting(
        "lmtp",
        kinds.optional(kinds.lmtp_address),
        "HOST:PORT",
        "off",
        "LMTP from a mail server on this machine, at a loopback address such as `127.0.0.1:2424`.",
    ),
    Setting(
        "metrics", kinds.optional(kinds.host_port), "HOST:PORT", "off", "Prometheus metrics under `/metrics`."
    ),
    Setting(
        "public_url",
        kinds.public_url,
        "URL",
        None,
        "Base of the links in mails, and the OAuth issuer.",
        "from `--http`",
    ),
    Setting(
        "hostname",
        kinds.domain,
        "NAME",
        None,
        "Name in HELO, MX target, Message-ID of system mail.",
        "the system's",
    ),
    Setting(
        "route",
        kinds.route,
        "ROUTE",
        "capture",
        "Where mail goes: `capture` keeps it here to be read, `direct` delivers to the recipients' servers, "
        "`relay:smtp://user:password@host:587` (or `smtps://`) hands it to a smarthost.",
        secret=True,
    ),
    Setting(
        "dns", kinds.each(kinds.resolver), "HOST:PORT[,…]", None, "DNS servers by address.", "the system's"
    ),
    Setting(
        "allow_private",
        kinds.networks,
        "CIDR[,…]",
        "none",
        "Networks that are not public and that outgoing HTTP and the route `direct` may reach all the same.",
    ),
    Setting(
        "roles",
        kinds.roles,
        "ROLE[,…]",
        "all",
        "What the processes of this machine do: `api`, `smtp`, `delivery`, `webhooks`, `jobs`.",
    ),
    Setting(
        "processes",
        kinds.whole_number(1, 256),
        "N",
        None,
        "Number of worker processes.",
        "one for each core",
    ),
    RATE_LIMIT,
    Setting(
        "initial_api_key",
        kinds.api_key,
        "KEY",
        None,
        "Full-access key of the first team; used only while no team exists.",
        "made at the first start and printed once",
        secret=True,
    ),
    Setting(
        "initial_email",
        kinds.email_address,
        "ADDRESS",
        "admin@localhost",
        "Address of the first team's member; used only while no team exists.",
    ),
    Setting(
        "secret_key",
        kinds.key_ring,
        "RING",
        None,
        "Keys that secrets are encrypted with, the same on every machine: `id:base64key[,…]`; the first one "
        "is used for new secrets.",
        f"the file `{KEY_RING_FILE}` under the data folder, made at the first start of an empty database",
        secret=True,
    ),
    Setting(
        "log",
        kinds.one_of("text", "json"),
        "FORM",
        None,
        "Form of the log on standard error: `text` or `json`.",
        "`text` on a terminal, else `json`",
    ),
    Setting(
        "log_level",
        kinds.one_of("debug", "info", "warning", "error"),
        "LEVEL",
        "info",
        "The least that is logged; `debug` adds the database's own log and periodic work that found nothing.",
    ),
    Setting(
        "tls_cert",
        kinds.readable_file,
        "FILE",
        None,
        "Certificate chain (PEM) for HTTPS and SMTP; needs `--tls-key`. Both notice when it is renewed.",
        "no HTTPS; SMTP shows a self-made one",
    ),
    Setting(
        "tls_key",
        kinds.readable_file,
        "FILE",
        None,
        "Private key (PEM) of the certificate; needs `--tls-cert`.",
        "no HTTPS; SMTP shows a self-made one",
    ),
    Setting(
        "trusted_proxy",
        kinds.networks,
        "CIDR[,…]",
        "none",
        "Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count.",
    ),
    Setting("require_user_agent", kinds.switch, "BOOL", "false", "Refuse API requests without a User-Agent."),
    Setting(
        "pg_bin",
        kinds.program_folder,
        "FOLDER",
        None,
        "PostgreSQL programs for the embedded database.",
        "those that were installed with Pillarbox",
    ),
)
