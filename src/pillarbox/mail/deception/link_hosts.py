"""The host that a link leads to, as a browser reads the link: what its author wrote may look like another.

host_of("https://evil.example\\@bank.example/")   # "evil.example"
shown_host("www.bank.example, our site")            # "www.bank.example"
web_host("mailto:iris@bank.example")              # "": no link to the web
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

import idna

LONGEST_URL: Final = 8192
LONGEST_HOST: Final = 253
UNKNOWN: Final = "unknown"
"""Stands for a host that cannot be read."""

_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}):[/\\]{0,9}(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_USUAL = re.compile(r"https?://([a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?)(?=[/?#]|\Z)")
"""An address of which nothing has to be changed to have its host."""
_END_OF_HOST = re.compile(r"[/\\?#]")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?|\[[0-9a-f:.]+\]")
_PORT = re.compile(r":[0-9]{0,5}$")
_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f]+")
_WEB = re.compile(r"https?:|[/\\]{2}", re.IGNORECASE)

_SITE: Final = re.compile(
    r"(?:https?://)?(?:[^@/\s]{1,64}@)?((?:[\w-]{1,63}\.){1,8}[a-z]{2,24})(?=[/:?#\s]|$)", re.IGNORECASE
)
_BARE_FILE: Final = re.compile(
    r"\.(?:pdf|docx?|xlsx?|zip|html?|png|jpe?g|txt|csv|js|py|md|net|io)$", re.IGNORECASE
)


def shown_host(text: str) -> str:
    """Return the host of the address that a text begins with, in ASCII; "" for another text, and for the name
    of a file."""
    named = _SITE.match(text)
    if named is None:
        return ""
    host = named[1].lower()
    host = host if host.isascii() else host_of(host)
    is_file = _BARE_FILE.search(host) and not (
        named[1].lower().startswith("www.") or named[0].lower().startswith("http")
    )
    return "" if is_file or host == UNKNOWN else host


def host_of_link(href: str) -> str:
    """Return what is shown of a link's target; "" for a place in the mail, and for an address of mail."""
    url = _NOT_IN_URL.sub("", href[:LONGEST_URL])
    scheme = url.partition(":")[0].lower()
    if not url or url.startswith("#") or scheme in ("mailto", "tel", "sms", "cid"):
        return ""
    return host_of(url)


def web_host(href: str) -> str:
    """Return the host of a link to the web; "" for any other, and where it cannot be read."""
    if (usual := _USUAL.match(href)) is not None:
        return usual[1]
    url = _NOT_IN_URL.sub("", href[:LONGEST_URL])
    host = host_of(url) if _WEB.match(url) else ""
    return "" if host == UNKNOWN else host


def host_of(url: str) -> str:
    """Return the host that a browser would ask for an address, in ASCII; of one without a host its scheme."""
    if (usual := _USUAL.match(url)) is not None:
        return usual[1]
    found = _ADDRESS.match(url[:LONGEST_URL])
    if found is not None and found["scheme"].lower() not in ("http", "https", "ftp"):
        # What runs in a browser has no host; of programs' own addresses it says nothing.
        return f"{found['scheme'].lower()}:"
    rest = found["rest"] if found is not None else url[:LONGEST_URL].lstrip("/\\")
    host = _END_OF_HOST.split(rest, maxsplit=1)[0].rpartition("@")[2]
    host = unquote(_PORT.sub("", host)).rstrip(".").lower()
    if len(host) > LONGEST_HOST:
        return UNKNOWN
    if not host.isascii():
        try:
            host = idna.encode(host, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            return UNKNOWN
    return host if _HOST.fullmatch(host) else UNKNOWN
