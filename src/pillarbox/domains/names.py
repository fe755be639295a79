"""Domain names (domains.md section 1.1): normal form, what is refused, and the registrable part."""

from __future__ import annotations

import re
from functools import cache, lru_cache

import idna
from publicsuffixlist import PublicSuffixList

LONGEST = 253
MOST_LABELS = 127
LONGEST_INPUT = 1000

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


class NotADomain(ValueError):  # noqa: N818
    """The text is not a name that can be registered; the message is a sentence."""


def normalised(text: str) -> str:
    """Return the name in lower-case A-labels; raise NotADomain for anything that is none (RFC 5891
    for IDN)."""
    if len(text) > LONGEST_INPUT:
        raise NotADomain(f"Use at most {LONGEST} characters.")
    name = _ascii(text.strip().lower()).removesuffix(".")
    labels = name.split(".")
    if not 2 <= len(labels) <= MOST_LABELS or len(name) > LONGEST:
        raise NotADomain("Use a domain name such as `example.com`.")
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise NotADomain("Use letters, digits and hyphens, in labels of 1 to 63 characters.")
    if labels[-1].isdigit():
        raise NotADomain("An IP address is not a domain name.")
    return name


def is_public_suffix(name: str) -> bool:
    """Return whether others register names under this one, such as `co.uk`."""
    return _suffixes().publicsuffix(name) == name


@lru_cache(maxsize=8192)
def registrable(name: str) -> str:
    """Return the public suffix and one label more; the name itself where it is no longer than that."""
    return _suffixes().privatesuffix(name) or name


def relative(owner: str, name: str) -> str:
    """Return `owner` put before `name` and written relative to the registrable domain: `send.mail`."""
    inner = name.removesuffix(registrable(name)).removesuffix(".")
    return f"{owner}.{inner}" if inner else owner


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList(accept_unknown=True, only_icann=True)


def _ascii(name: str) -> str:
    """Return the A-labels of a name; labels that pretend to be A-labels must be ones (RFC 5891
    section 5.4)."""
    if name.isascii() and "xn--" not in name:
        return name
    try:
        return idna.encode(name, uts46=True, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise NotADomain("It is not a valid internationalised domain name.") from None
