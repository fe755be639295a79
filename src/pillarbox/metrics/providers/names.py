"""Which mailbox provider a mail server belongs to, by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pillarbox.domains.names import registrable

PROVIDERS: Final[Mapping[str, str]] = {
    "google.com": "Google",
    "googlemail.com": "Google",
    "outlook.com": "Microsoft",
    "hotmail.com": "Microsoft",
    "office365.us": "Microsoft",
    "microsoft.com": "Microsoft",
    "yahoodns.net": "Yahoo",
    "yahoo.com": "Yahoo",
    "icloud.com": "Apple iCloud",
    "apple.com": "Apple iCloud",
    "gmx.net": "GMX and WEB.DE",
    "web.de": "GMX and WEB.DE",
    "mail.com": "GMX and WEB.DE",
    "kundenserver.de": "IONOS",
    "ionos.com": "IONOS",
    "1and1.com": "IONOS",
    "perfora.net": "IONOS",
    "t-online.de": "Telekom",
    "strato.de": "STRATO",
    "rzone.de": "STRATO",
    "protonmail.ch": "Proton",
    "proton.me": "Proton",
    "messagingengine.com": "Fastmail",
    "zoho.com": "Zoho",
    "zoho.eu": "Zoho",
    "mail.ru": "Mail.ru",
    "yandex.ru": "Yandex",
    "yandex.net": "Yandex",
    "qq.com": "Tencent QQ",
    "netease.com": "NetEase",
    "163.com": "NetEase",
    "naver.com": "Naver",
    "orange.fr": "Orange",
    "wanadoo.fr": "Orange",
    "free.fr": "Free",
    "laposte.net": "La Poste",
    "libero.it": "Libero",
    "seznam.cz": "Seznam",
    "wp.pl": "WP",
    "comcast.net": "Comcast",
    "att.net": "AT&T",
    "emailsrvr.com": "Rackspace",
    "secureserver.net": "GoDaddy",
    "ovh.net": "OVHcloud",
    "gandi.net": "Gandi",
    "hostinger.com": "Hostinger",
    "one.com": "one.com",
    "amazonaws.com": "Amazon",
    "pphosted.com": "Proofpoint",
    "ppe-hosted.com": "Proofpoint",
    "mimecast.com": "Mimecast",
    "barracudanetworks.com": "Barracuda",
    "iphmx.com": "Cisco",
    "messagelabs.com": "Broadcom",
    "sophos.com": "Sophos",
    "trendmicro.com": "Trend Micro",
    "trendmicro.eu": "Trend Micro",
    "hornetsecurity.com": "Hornetsecurity",
}
"""Providers by the registrable domain of their mail servers."""


def provider_of(host: str) -> str:
    """Return the name of the provider, or the registrable domain of a host that is not known."""
    name = host.rstrip(".").lower()
    if "." not in name or name.rpartition(".")[2].strip("]").isdigit():
        return name
    domain = registrable(name)
    return PROVIDERS.get(domain, domain)
