"""The settings of the kernel: what the supervisor and every process need. Slices have rows of their own."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting

KEY_RING_FILE = "secret.key"

RATE_LIMIT = Setting(
    name="rate_limit",
    parse=kinds.whole_number(0, 1_000_000),
    shape="N",
    default="10",
    meaning="API requests each second for each team, over all machines; 0 is no limit.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    Setting(
        name="data",
        parse=kinds.folder,
        shape="FOLDER",
        default="./pillarbox-data",
        meaning="Embedded database, blobs, keys.",
    ),
    Setting(
        name="database_url",
        parse=kinds.database_url,
        shape="URL",
        default=None,
        meaning="Any PostgreSQL from version 14 on; behind PgBouncer in session mode alone.",
        otherwise="the embedded database",
        secret=True,
    ),
    Setting(
        name="database_shards",
        parse=kinds.whole_number(0, 1024),
        shape="N",
        default="0",
        meaning="Experimental: how many shards `distribute.sql` has made of the tables; 0 for an ordinary "
        "database.",
    ),
    Setting(
        name="blob_url",
        parse=kinds.blob_url,
        shape="URL",
        default=None,
        meaning="Where large bodies are kept, for all machines: `file:`, `s3://…`, `gs://…` or `az://…`.",
        otherwise="`blobs` under the data folder",
        secret=True,
    ),
    Setting(
        name="http",
        parse=kinds.host_port,
        shape="HOST:PORT",
        default="127.0.0.1:8080",
        meaning="API, dashboard and public pages.",
    ),
    Setting(
        name="smtp",
        parse=kinds.optional(kinds.host_port),
        shape="HOST:PORT",
        default="127.0.0.1:2525",
        meaning="SMTP from other mail servers, and with AUTH; or `off`.",
    ),
    Setting(
        name="submission",
        parse=kinds.submission_listeners,
        shape="HOST:PORT[,…]",
        default="127.0.0.1:2587",
        meaning="SMTP submission with STARTTLS, with the prefix `tls://` implicit TLS; or `off`.",
    ),
    Setting(
        name="lmtp",
        parse=kinds.optional(kinds.lmtp_address),
        shape="HOST:PORT",
        default="off",
        meaning="LMTP from a mail server on this machine, at a loopback address such as `127.0.0.1:2424`.",
    ),
    Setting(
        name="metrics",
        parse=kinds.optional(kinds.host_port),
        shape="HOST:PORT",
        default="off",
        meaning="Prometheus metrics under `/metrics`.",
    ),
    Setting(
        name="public_url",
        parse=kinds.public_url,
        shape="URL",
        default=None,
        meaning="Base of the links in mails, and the OAuth issuer.",
        otherwise="from `--http`",
    ),
    Setting(
        name="hostname",
        parse=kinds.domain,
        shape="NAME",
        default=None,
        meaning="Name in HELO, MX target, Message-ID of system mail.",
        otherwise="the system's",
    ),
    Setting(
        name="route",
        parse=kinds.route,
        shape="ROUTE",
        default="capture",
        meaning="Where mail goes: `capture` keeps it here to be read, `direct` delivers to the recipients' "
        "servers, `relay:smtp://user:password@host:587` (or `smtps://`) hands it to a smarthost.",
        secret=True,
    ),
    Setting(
        name="dns",
        parse=kinds.each(kinds.resolver),
        shape="HOST:PORT[,…]",
        default=None,
        meaning="DNS servers by address.",
        otherwise="the system's",
    ),
    Setting(
        name="allow_private",
        parse=kinds.networks,
        shape="CIDR[,…]",
        default="none",
        meaning="Networks that are not public and that outgoing HTTP and the route `direct` may reach all "
        "the same.",
    ),
    Setting(
        name="roles",
        parse=kinds.roles,
        shape="ROLE[,…]",
        default="all",
        meaning="What the processes of this machine do: `api`, `smtp`, `delivery`, `webhooks`, `jobs`.",
    ),
    Setting(
        name="processes",
        parse=kinds.whole_number(1, 256),
        shape="N",
        default=None,
        meaning="Number of worker processes.",
        otherwise="one for each core",
    ),
    RATE_LIMIT,
    Setting(
        name="initial_api_key",
        parse=kinds.api_key,
        shape="KEY",
        default=None,
        meaning="Full-access key of the first team; used only while no team exists.",
        otherwise="made at the first start and printed once",
        secret=True,
    ),
    Setting(
        name="initial_email",
        parse=kinds.email_address,
        shape="ADDRESS",
        default="admin@localhost",
        meaning="Address of the first team's member; used only while no team exists.",
    ),
    Setting(
        name="secret_key",
        parse=kinds.key_ring,
        shape="RING",
        default=None,
        meaning="Keys that secrets are encrypted with, the same on every machine: `id:base64key[,…]`; the "
        "first one is used for new secrets.",
        otherwise=f"the file `{KEY_RING_FILE}` under the data folder, made at the first start of an empty "
        f"database",
        secret=True,
    ),
    Setting(
        name="log",
        parse=kinds.one_of("text", "json"),
        shape="FORM",
        default=None,
        meaning="Form of the log on standard error: `text` or `json`.",
        otherwise="`text` on a terminal, else `json`",
    ),
    Setting(
        name="log_level",
        parse=kinds.one_of("debug", "info", "warning", "error"),
        shape="LEVEL",
        default="info",
        meaning="The least that is logged; `debug` adds the database's own log and periodic work that "
        "found nothing.",
    ),
    Setting(
        name="tls_cert",
        parse=kinds.readable_file,
        shape="FILE",
        default=None,
        meaning="Certificate chain (PEM) for HTTPS and SMTP; needs `--tls-key`. Both notice when it is "
        "renewed.",
        otherwise="no HTTPS; SMTP shows a self-made one",
    ),
    Setting(
        name="tls_key",
        parse=kinds.readable_file,
        shape="FILE",
        default=None,
        meaning="Private key (PEM) of the certificate; needs `--tls-cert`.",
        otherwise="no HTTPS; SMTP shows a self-made one",
    ),
    Setting(
        name="trusted_proxy",
        parse=kinds.networks,
        shape="CIDR[,…]",
        default="none",
        meaning="Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count.",
    ),
    Setting(
        name="require_user_agent",
        parse=kinds.switch,
        shape="BOOL",
        default="false",
        meaning="Refuse API requests without a User-Agent.",
    ),
    Setting(
        name="pg_bin",
        parse=kinds.program_folder,
        shape="FOLDER",
        default=None,
        meaning="PostgreSQL programs for the embedded database.",
        otherwise="those that were installed with Pillarbox",
    ),
)
