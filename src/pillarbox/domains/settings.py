"""The settings of domains, and of the names that are this installation's own."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting
from pillarbox.kernel.settings.settings import Settings

SIMULATOR_DOMAINS = Setting(
    name="simulator_domains",
    parse=kinds.domains,
    shape="DOMAIN[,…]",
    default="pillarbox.test,resend.dev",
    meaning="Domains whose addresses stand for a fixed outcome; mail to them never leaves the machine. "
    "`none` for no such domain.",
)

SPF_VALUE: Setting[str | None] = Setting(
    name="spf_value",
    parse=kinds.spf_record,
    shape="RECORD",
    default=None,
    meaning="SPF record that customers' domains are asked to publish.",
    otherwise="`v=spf1 a:<hostname> ~all`",
)

RECEIVING_OWNERSHIP_PROOF = Setting(
    name="receiving_ownership_proof",
    parse=kinds.one_of("auto", "always", "never"),
    shape="WHEN",
    default="auto",
    meaning="Whether a domain must show its DKIM record to receive; `auto`: as soon as there are two teams.",
)

INBOUND_DOMAIN = Setting(
    name="inbound_domain",
    parse=kinds.optional(kinds.domain),
    shape="DOMAIN",
    default="off",
    meaning="Domain below which every team receives without one of its own, at the name that "
    "`pillarbox teams list` shows; its MX is this machine. Or `off`.",
)

SETTINGS: tuple[Setting[Any], ...] = (
    SIMULATOR_DOMAINS,
    SPF_VALUE,
    RECEIVING_OWNERSHIP_PROOF,
    INBOUND_DOMAIN,
)


def spf_value(settings: Settings) -> str:
    """Return the SPF record that domains are asked to publish."""
    return settings[SPF_VALUE] or f"v=spf1 a:{settings.hostname} ~all"
