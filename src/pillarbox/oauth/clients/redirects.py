"""Redirect URIs: which may be registered, which one of a request is a registered one, and how an answer is
added (oauth.md 3 and 5; RFC 6749, 3.1.2; RFC 8252, 7.3). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlencode, urlsplit

LONGEST: Final = 2048
MOST: Final = 10

LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
REFUSED_SCHEMES: Final = frozenset({"file", "ftp", "data", "javascript", "blob", "about", "vbscript"})

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.+)", re.ASCII)
_PRINTABLE = re.compile(r"[!-~]+")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::[0-9]*)?")
"""A host that browsers and people read as it is written: nothing is percent-encoded in it."""

_LOOPBACK = re.compile(
    r"(http://(?:127\.0\.0\.1|localhost|\[::1\]))(?::([0-9]{1,5}))?((?:[/?].*)?)", re.IGNORECASE
)


def refusal(uri: str) -> str | None:
    """Return why a program may not have this redirect URI; None where it may."""
    if not 1 <= len(uri) <= LONGEST:
        return f"must have 1 to {LONGEST} characters"
    if not _PRINTABLE.fullmatch(uri) or "\\" in uri:
        return "must be a URI: printable ASCII without spaces and backslashes"
    if "#" in uri:
        return "must not have a fragment"
    found = _SCHEME.fullmatch(uri)
    if found is None:
        return "must be an absolute URI with a scheme"
    scheme = found[1].lower()
    if scheme in REFUSED_SCHEMES:
        return f"the scheme {scheme} is not allowed"
    if scheme == "http":
        return None if is_loopback(uri) else "http is only allowed for loopback hosts"
    return _https_refusal(uri) if scheme == "https" else None


def _https_refusal(uri: str) -> str | None:
    try:
        parts = urlsplit(uri)
        is_whole = bool(parts.hostname) and uri[6:8] == "//" and (parts.port is None or parts.port > 0)
    except ValueError:
        return "must have a host"
    if not is_whole:
        return "must have a host"
    return None if _HOST.fullmatch(parts.netloc.rpartition("@")[2]) else "must have a plain ASCII host name"


def is_loopback(uri: str) -> bool:
    """Return whether it is an http URI of this machine itself, whatever its port."""
    return _parts(uri) is not None


def _parts(uri: str) -> tuple[str, str] | None:
    """Return the parts of a loopback URI that stay the same when its port changes."""
    found = _LOOPBACK.fullmatch(uri)
    # The host counts as it is spelled, the scheme does not.
    if found is None or found[1][7:] not in LOOPBACK_HOSTS or int(found[2] or 0) > 65535:
        return None
    return found[1], found[3]


def matches(uri: str, registered: Iterable[str]) -> bool:
    """Return whether a request may name this URI: it is a registered one to the letter, but that the port of
    a loopback URI may be another."""
    if any(uri == known for known in registered):
        return True
    parts = _parts(uri)
    return parts is not None and any(parts == _parts(known) for known in registered)


def place(uri: str) -> str:
    """Return a redirect URI as people are shown it: its host, or the scheme of a program on their machine."""
    scheme = uri.partition(":")[0].lower()
    # What follows another scheme need not be an authority, and `urlsplit` raises for some of it.
    return urlsplit(uri).netloc.rpartition("@")[2] if scheme in ("http", "https") else f"{scheme}:"


def with_answer(uri: str, values: Mapping[str, str | None]) -> str:
    """Return the URI with an answer added to its query (RFC 6749, 4.1.2); values that are None are left
    out."""
    added = urlencode([(name, value) for name, value in values.items() if value is not None])
    if "?" not in uri:
        return f"{uri}?{added}"
    return f"{uri}{added}" if uri.endswith(("?", "&")) else f"{uri}&{added}"
