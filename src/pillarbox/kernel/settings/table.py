"""The settings: one table, from which flags, environment, `…_FILE`, checks and documentation are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pillarbox.kernel.settings import kinds

PREFIX = "PILLARBOX_"
KEY_RING_FILE = "secret.key"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. `default` is text like the operator's; None is computed or absent, and then
    `otherwise` says in words what holds."""

    name: str
    parse: Callable[[str], Any]
    shape: str
    default: str | None
    meaning: str
    otherwise: str = ""
    secret: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def env(self) -> str:
        return PREFIX + self.name.upper()


SETTINGS: tuple[Setting, ...] = (
    Setting("data", kinds.folder, "FOLDER", "./pillarbox-data", "Embedded database, blobs, keys."),
    Setting(
        "database_url",
        kinds.database_url,
        "URL",
        None,
        "Any PostgreSQL from version 14 on.",
        "the embedded database",
        secret=True,
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
        "smtp_login_needs_tls",
        kinds.switch,
        "BOOL",
        "true",
        "Whether AUTH is offered under TLS alone; `false` is for tests on loopback, where nobody listens.",
    ),
    Setting(
        "smtp_sessions",
        kinds.whole_number(1, 1_000_000),
        "N",
        "2000",
        "How many SMTP sessions there may be at once, divided by the processes.",
    ),
    Setting(
        "smtp_client_sessions",
        kinds.optional(kinds.whole_number(1, 1_000_000)),
        "N",
        "20",
        "How many of them one client may have (an IPv4 address, or 64 bits of IPv6); or `off`.",
    ),
    Setting(
        "smtp_client_rate",
        kinds.optional(kinds.whole_number(1, 10_000_000)),
        "N",
        "600",
        "How many SMTP connections one client may open in a minute; or `off`.",
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
        "remote_smtp_port",
        kinds.whole_number(1, 65535),
        "PORT",
        "25",
        "Port that the route `direct` connects to (for tests).",
    ),
    Setting(
        "mta_sts",
        kinds.switch,
        "BOOL",
        "true",
        "Whether the route `direct` follows the MTA-STS policies of recipients' domains.",
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
    Setting(
        "rate_limit",
        kinds.whole_number(0, 1_000_000),
        "N",
        "10",
        "API requests each second for each team; 0 is no limit.",
    ),
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
        "require_verified_domain",
        kinds.one_of("auto", "always", "never"),
        "WHEN",
        "auto",
        "Whether the sender's domain must be verified; `auto`: except with the route `capture`.",
    ),
    Setting(
        "simulator_domains",
        kinds.domains,
        "DOMAIN[,…]",
        "pillarbox.test,resend.dev",
        "Domains whose addresses stand for a fixed outcome; mail to them never leaves the machine. "
        "`none` for no such domain.",
    ),
    Setting(
        "delivery_window",
        kinds.duration,
        "DURATION",
        "96h",
        "How long after the first attempt delivery is tried.",
    ),
    Setting(
        "queue_limit",
        kinds.whole_number(0, 1_000_000_000),
        "NUMBER",
        "5000000",
        "New mail is refused with 503 while about so many deliveries wait; 0 is no limit.",
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
        "capture_limit",
        kinds.size,
        "SIZE",
        "1GiB",
        "How much captured mail is kept; beyond it the oldest mails go.",
    ),
    Setting(
        "email_retention_days",
        kinds.whole_number(0, 36500),
        "DAYS",
        "0",
        "For how many days after its last event an email is kept, with its recipients, history, content and "
        "attachments; 0 keeps it.",
    ),
    Setting(
        "body_retention_days",
        kinds.whole_number(0, 36500),
        "DAYS",
        "0",
        "The same for its html, text and attachments alone; 0 keeps them as long as the email.",
    ),
    Setting(
        "orphan_blob_days",
        kinds.whole_number(0, 36500),
        "DAYS",
        "1",
        "For how many days blobs are kept that nothing in the database names (what a crash left behind); 0 "
        "keeps them.",
    ),
    Setting(
        "metrics_retention_days",
        kinds.whole_number(0, 36500),
        "DAYS",
        "0",
        "For how many UTC days the numbers of `GET /emails/metrics` are kept (those of broadcasts always); 0 "
        "keeps them.",
    ),
    Setting(
        "log_retention_days",
        kinds.whole_number(0, 36500),
        "DAYS",
        "30",
        "For how many days the log of API requests is kept; 0: no log.",
    ),
    Setting(
        "metrics_cache_seconds",
        kinds.whole_number(0, 900),
        "SECONDS",
        "0",
        "For how long an answer of `GET /emails/metrics` may be given again; 0 computes each.",
    ),
    Setting(
        "spf_value",
        kinds.spf_record,
        "RECORD",
        None,
        "SPF record that customers' domains are asked to publish.",
        "`v=spf1 a:<hostname> ~all`",
    ),
    Setting(
        "most_domains",
        kinds.optional(kinds.whole_number(1, 1_000_000)),
        "N",
        "off",
        "How many domains a team may have; or `off`.",
    ),
    Setting(
        "most_webhooks",
        kinds.whole_number(0, 500),
        "N",
        "50",
        "How many webhooks a team may have: each event is a delivery to each of them. What exists stays.",
    ),
    Setting(
        "most_api_keys",
        kinds.whole_number(0, 100_000),
        "N",
        "1000",
        "How many API keys a team may have. What exists stays.",
    ),
    Setting(
        "receiving_ownership_proof",
        kinds.one_of("auto", "always", "never"),
        "WHEN",
        "auto",
        "Whether a domain must show its DKIM record to receive; `auto`: as soon as there are two teams.",
    ),
    Setting(
        "inbound_domain",
        kinds.optional(kinds.domain),
        "DOMAIN",
        "off",
        "Domain below which every team receives without one of its own, at the name that "
        "`pillarbox teams list` shows; its MX is this machine. Or `off`.",
    ),
    Setting(
        "inbound_require_dns",
        kinds.switch,
        "BOOL",
        "true",
        "Whether a domain receives only after DNS showed its MX; `false` is for closed networks and tests.",
    ),
    Setting(
        "reject_dmarc_fail",
        kinds.switch,
        "BOOL",
        "false",
        "Refuse mail that fails DMARC where the domain of its author asks for that; else it is kept as spam.",
    ),
    Setting(
        "rspamd_url",
        kinds.optional(kinds.public_url),
        "URL",
        "off",
        "An rspamd worker that says what is spam, such as `http://127.0.0.1:11333`; "
        "`off`: DMARC alone says it.",
    ),
    Setting(
        "received_retention_days",
        kinds.whole_number(0, 36500),
        "DAYS",
        "0",
        "For how many days received mail is kept; 0 keeps it.",
    ),
    Setting(
        "received_storage",
        kinds.size,
        "SIZE",
        "0",
        "How much received mail one team may have, such as `10GiB`; beyond it senders are put off, but for "
        "mail to postmaster and abuse. 0 is no limit.",
    ),
    Setting(
        "claim_grace",
        kinds.optional(kinds.duration),
        "DURATION",
        "7d",
        "How long a domain cannot be claimed by another team after it was verified or claimed; or `off`.",
    ),
    Setting(
        "claim_quiet",
        kinds.optional(kinds.duration),
        "DURATION",
        "24h",
        "How long its owner must have sent nothing from a domain before another team gets it; or `off`.",
    ),
    Setting(
        "claim_scheduled",
        kinds.switch,
        "BOOL",
        "true",
        "Whether scheduled mail of its owner keeps a domain from another team that claims it.",
    ),
    Setting(
        "claim_token_prefix",
        kinds.txt_key,
        "NAME",
        "pillarbox-domain-verification",
        "Name in the TXT record that proves a claim.",
    ),
    Setting(
        "webhooks_allow_http",
        kinds.switch,
        "BOOL",
        "false",
        "Whether webhooks may have `http` endpoints; anybody on the way can then read what they are sent.",
    ),
    Setting(
        "webhooks_allowed_ports",
        kinds.ports,
        "PORT[,…]",
        "any",
        "Ports that webhooks may call; `any`: all but those of mail servers (25, 465, 587).",
    ),
    Setting(
        "webhooks_retention_days",
        kinds.whole_number(0, 36500),
        "DAYS",
        "90",
        "For how many days the events, deliveries and answers of webhooks are kept; 0 keeps them.",
    ),
    Setting(
        "webhooks_retries",
        kinds.each(kinds.duration),
        "DURATION[,…]",
        "5s,5m,30m,2h,5h,10h,10h",
        "How long a delivery to a webhook waits after each failed attempt; after the last one it has failed.",
    ),
    Setting(
        "reject_reserved_recipients",
        kinds.switch,
        "BOOL",
        "false",
        "Refuse recipients at reserved domains such as example.com.",
    ),
    Setting(
        "pg_bin",
        kinds.program_folder,
        "FOLDER",
        None,
        "PostgreSQL programs for the embedded database.",
        "those that were installed with Pillarbox",
    ),
)

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}
