"""A URL as it may stand in the header `Location` (RFC 9110, 10.2.2): ASCII, with every octet kept."""

from __future__ import annotations

import re
from urllib.parse import quote

import idna

_PARTS = re.compile(r"(https?://)([^/\\?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(.*@)?(.*?)(:[0-9]*)?", re.DOTALL)
_NOT_VISIBLE = re.compile(r"[^\x21-\x7e]+")


def location(url: str) -> str:
    """The same place for a browser. What is visible ASCII stays as it is; a host of other letters gets its
    A-labels, and everything else that is not ASCII its escapes."""
    parts = _PARTS.fullmatch(url)
    if parts is None:
        return _escaped(url)
    scheme, authority, rest = parts.groups()
    found = _AUTHORITY.fullmatch(authority)
    user, host, port = found.groups("") if found else ("", authority, "")
    return f"{scheme}{_escaped(user)}{_host(host)}{port}{_escaped(rest)}"


def _host(host: str) -> str:
    if host.isascii():
        return _escaped(host)
    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        # Browsers undo the escapes of a host before they look at it (URL standard 3.5).
        return quote(host, safe="")


def _escaped(text: str) -> str:
    return _NOT_VISIBLE.sub(lambda found: quote(found[0], safe="", errors="replace"), text)
