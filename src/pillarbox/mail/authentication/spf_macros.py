"""Macros of SPF records (RFC 7208, 7): their syntax, and what they stand for."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
LONGEST_NAME: Final = 253

_EXPAND = r"%(?:\{[slodiphcrtvSLODIPHCRTV][0-9]*[rR]?[.+,/_=-]*\}|%|_|-)"
MACRO_STRING: Final = re.compile(rf"(?>(?:{_EXPAND}|[!-$&-~])*)")
EXPLAIN_STRING: Final = re.compile(rf"(?>(?:{_EXPAND}|[ -$&-~])*)")
_ENDS_WITH_EXPAND = re.compile(rf".*{_EXPAND}", re.DOTALL)
_TOP_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?")
_MACRO = re.compile(r"%(?:\{([A-Za-z])([0-9]*)([rR]?)([.+,/_=-]*)\}|([%_-]))")
_LITERAL: Final = {"%": "%", "_": " ", "-": "%20"}
_ONLY_IN_EXPLANATION: Final = "crt"
_UNESCAPED: Final = "-._~"


@dataclass(frozen=True, slots=True)
class MacroValues:
    """The values of the macro letters; `domain` is that of the record at hand."""

    sender: str
    domain: str
    ip: IpAddress
    helo: str
    receiver: str
    seconds: int

    def value(self, letter: str, validated: str) -> str:
        """Return the text of one lower-case macro letter; `validated` is the answer to `p` (7.3)."""
        local, _, sender_domain = self.sender.rpartition("@")
        values = {
            "s": self.sender,
            "l": local,
            "o": sender_domain,
            "d": self.domain,
            "i": _dotted(self.ip),
            "p": validated,
            "h": self.helo,
            "c": str(self.ip),
            "r": self.receiver or "unknown",
            "t": str(self.seconds),
            "v": "in-addr" if self.ip.version == 4 else "ip6",
        }
        return values[letter]


def is_domain_spec(text: str) -> bool:
    """Return whether `text` is a domain-spec (7.1): a macro string with a proper end,
    outside explanations."""
    if not text or not MACRO_STRING.fullmatch(text) or letters(text) & set(_ONLY_IN_EXPLANATION):
        return False
    if _ENDS_WITH_EXPAND.fullmatch(text):
        return True
    _, dot, top = text.removesuffix(".").rpartition(".")
    return bool(dot) and bool(_TOP_LABEL.fullmatch(top)) and not top.isdigit()


def letters(text: str) -> set[str]:
    """Return the macro letters that `text` uses, in lower case."""
    return {found[1].lower() for found in _MACRO.finditer(text) if found[1]}


def expanded(text: str, facts: MacroValues, validated: str) -> str:
    """Return `text` with its macros expanded; `text` has been checked before."""
    return _MACRO.sub(lambda found: _expansion(found, facts, validated), text)


def shortened(name: str) -> str:
    """Return an expanded domain name, cut from the left to 253 characters at a label (7.3)."""
    name = name.removesuffix(".")
    while len(name) > LONGEST_NAME and "." in name:
        name = name.partition(".")[2]
    return name


def has_valid_numbers(text: str) -> bool:
    """Return whether every count of labels is more than 0 (7.1)."""
    return all(int(found[2][:9]) > 0 for found in _MACRO.finditer(text) if found[2])


def _expansion(match: re.Match[str], facts: MacroValues, validated: str) -> str:
    if match[5]:
        return _LITERAL[match[5]]
    value = facts.value(match[1].lower(), validated)
    if match[2] or match[3] or match[4]:
        parts = re.split(f"[{re.escape(match[4] or '.')}]", value)
        if match[3]:
            parts.reverse()
        value = ".".join(parts[-int(match[2][:9]) :] if match[2] else parts)
    return quote(value, safe=_UNESCAPED) if match[1].isupper() else value


def _dotted(ip: IpAddress) -> str:
    """Return the address in labels: dotted quad, or nibbles."""
    if ip.version == 4:
        return str(ip)
    return ".".join(ip.exploded.replace(":", "").upper())


def reverse_name(ip: IpAddress) -> str:
    """Return where the PTR records of an address are."""
    return ip.reverse_pointer
