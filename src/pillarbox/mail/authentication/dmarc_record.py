"""DMARC policy records as values (RFC 9989, 4.7), of which only what a receiver acts on is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Policy = Literal["none", "quarantine", "reject"]
Psd = Literal["y", "n", "u"]

_POLICIES: Final[dict[str, Policy]] = {"none": "none", "quarantine": "quarantine", "reject": "reject"}
_PSDS: Final[dict[str, Psd]] = {"y": "y", "n": "n"}
_VERSION = re.compile(r"v[ \t]*=[ \t]*DMARC1[ \t]*(?:;|$)")
_WEAKER: Final[dict[Policy, Policy]] = {"reject": "quarantine", "quarantine": "none", "none": "none"}


@dataclass(frozen=True, slots=True)
class DmarcRecord:
    """The policy that the owner of a domain publishes; `pct` is not read any more (RFC 9989, appendix)."""

    policy: Policy
    subdomain_policy: Policy
    missing_policy: Policy | None
    strict_dkim: bool
    strict_spf: bool
    psd: Psd
    testing: bool

    def wanted(self, *, is_own: bool, exists: bool) -> Policy:
        """Return the policy for a mail from the record's own domain, from one below it, or from one that
        is not."""
        policy = self.policy
        if not is_own:
            policy = self.subdomain_policy
            if not exists and self.missing_policy is not None:
                policy = self.missing_policy
        return _WEAKER[policy] if self.testing else policy


def is_dmarc(text: str) -> bool:
    """Return whether a TXT record is a DMARC record at all: the version comes first, with its case (4.7)."""
    return _VERSION.match(text) is not None


def parse(text: str) -> DmarcRecord | None:
    """Return the record of a text which `is_dmarc`, or None when no policy can be read from it (4.7)."""
    tags: dict[str, str] = {}
    for item in text.split(";"):
        name, equals, value = item.partition("=")
        if equals:
            tags.setdefault(name.strip(" \t").lower(), value.strip(" \t"))
    policy = _POLICIES.get(tags.get("p", "").lower())
    wrong = any(name in tags and tags[name].lower() not in _POLICIES for name in ("sp", "np"))
    if policy is None or wrong:
        # Whoever asks for reports wants DMARC, but what it wants done cannot be known.
        if "mailto:" not in tags.get("rua", "").lower():
            return None
        policy = "none"
        tags = {name: value for name, value in tags.items() if name not in ("sp", "np")}
    return DmarcRecord(
        policy=policy,
        subdomain_policy=_POLICIES.get(tags.get("sp", "").lower(), policy),
        missing_policy=_POLICIES.get(tags.get("np", "").lower()),
        strict_dkim=tags.get("adkim", "").lower() == "s",
        strict_spf=tags.get("aspf", "").lower() == "s",
        psd=_PSDS.get(tags.get("psd", "").lower(), "u"),
        testing=tags.get("t", "").lower() == "y",
    )
