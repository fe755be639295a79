"""DMARC: does the domain in From stand behind this mail, and what if not (RFC 9989; DMARC-01, DMARC-02)?

    found = await dmarc.evaluate(message.authors, spf, dkim, lookup)
    found.result, found.policy

The organizational domain and the policy are found by walking up the tree of DNS names, at most eight
queries for a name, without a list of public suffixes. Only one plain From mailbox can pass: none,
several, or one that had to be guessed is a fail with the policy reject, since such a mail can show
people any author it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pillarbox.mail.authentication import dmarc_record
from pillarbox.mail.authentication.dkim_verify import Dkim
from pillarbox.mail.authentication.dmarc_record import DmarcRecord, Policy
from pillarbox.mail.authentication.spf import Spf, SpfLookup
from pillarbox.mail.message.address import AddressError, parse_domain
from pillarbox.mail.message.address_fields import AddressFields

Result = Literal["pass", "fail", "none", "temperror"]

MOST_LABELS: Final = 8
"""A longer name is first asked for itself, then cut to seven labels (4.10)."""


@dataclass(frozen=True, slots=True)
class Dmarc:
    """The verdict on a mail. `policy` is what the domain asks for when the result is fail.

    `domain` is that of From, `policy_domain` where the record stands; "" and None where there is none.
    """

    result: Result
    domain: str = ""
    policy: Policy = "none"
    policy_domain: str | None = None
    aligned_spf: bool = False
    aligned_dkim: bool = False
    reason: str | None = None

    @property
    def passed(self) -> bool:
        return self.result == "pass"


NO_AUTHOR: Final = Dmarc("fail", policy="reject", reason="From is not one well-formed mailbox")


class _LookupFailed(Exception):  # noqa: N818 - a result for the mail, not a mistake of ours
    pass


async def evaluate(authors: AddressFields, spf: Spf | None, dkim: Sequence[Dkim], lookup: SpfLookup) -> Dmarc:
    """Return the verdict on a mail from these authors, given what SPF and DKIM found."""
    domain = author_domain(authors)
    if domain is None:
        return NO_AUTHOR
    walks = _Walks(lookup)
    try:
        found = await walks.policy(domain)
        if found is None:
            return Dmarc("none", domain)
        policy_domain, record = found
        by_spf = [spf.domain.rstrip(".").lower()] if spf is not None and spf.passed else []
        by_dkim = [signature.domain for signature in dkim if signature.passed]
        aligned_spf = await walks.any_aligned(domain, by_spf, strict=record.strict_spf)
        aligned_dkim = await walks.any_aligned(domain, by_dkim, strict=record.strict_dkim)
        passed = aligned_spf or aligned_dkim
        exists = passed or record.missing_policy is None or await _exists(domain, lookup)
    except _LookupFailed:
        return Dmarc("temperror", domain, reason="the policy cannot be looked up at the moment")
    policy = record.wanted(is_own=policy_domain == domain, exists=exists)
    result: Result = "pass" if passed else "fail"
    return Dmarc(
        result=result,
        domain=domain,
        policy=policy,
        policy_domain=policy_domain,
        aligned_spf=aligned_spf,
        aligned_dkim=aligned_dkim,
    )


def author_domain(authors: AddressFields) -> str | None:
    """Return the domain of the one From mailbox, in A-labels; None where it must not be
    guessed (DMARC-02)."""
    if not authors.exact or len(authors.mailboxes) != 1:
        return None
    try:
        return parse_domain(authors.mailboxes[0].domain)
    except AddressError:
        return None


class _Walks:
    """The records that were asked for; of one mail, no name is asked for twice."""

    def __init__(self, lookup: SpfLookup) -> None:
        self._lookup = lookup
        self._known: dict[str, DmarcRecord | None] = {}

    async def policy(self, domain: str) -> tuple[str, DmarcRecord] | None:
        """Return the record that applies to a mail from `domain`, and where it stands (4.10.1)."""
        walked = await self._walk(domain)
        own = [(name, record) for name, record in walked if name == domain]
        if own:
            return own[0]
        organizational = _organizational(domain, walked)
        at_organization = [(name, record) for name, record in walked if name == organizational]
        suffixes = [(name, record) for name, record in walked if record.psd == "y"]
        return next(iter([*at_organization, *suffixes]), None)

    async def any_aligned(self, domain: str, domains: Sequence[str], *, strict: bool) -> bool:
        """Return whether one of the authenticated domains is aligned with that of From (4.4)."""
        if domain in domains:
            return True
        if strict or not domains:
            return False
        organizational = _organizational(domain, await self._walk(domain))
        for other in dict.fromkeys(domains):
            is_near = other == organizational or other.endswith(f".{organizational}")
            if is_near and _organizational(other, await self._walk(other)) == organizational:
                return True
        return False

    async def _walk(self, domain: str) -> list[tuple[str, DmarcRecord]]:
        """Return the records from `domain` upwards, until one says where the organization ends (4.10)."""
        found: list[tuple[str, DmarcRecord]] = []
        for name in walked_names(domain):
            record = await self._record(name)
            if record is not None:
                found.append((name, record))
                if record.psd != "u":
                    break
        return found

    async def _record(self, name: str) -> DmarcRecord | None:
        if name not in self._known:
            answer = await self._lookup.txt(f"_dmarc.{name}")
            if answer.status == "failed":
                raise _LookupFailed
            records = [text for text in answer.records if dmarc_record.is_dmarc(text)]
            # Several records are as good as none.
            self._known[name] = dmarc_record.parse(records[0]) if len(records) == 1 else None
        return self._known[name]


def walked_names(domain: str) -> list[str]:
    """Return the names that a walk asks for, at most eight (4.10)."""
    labels = domain.split(".")
    names = [domain]
    labels = labels[-(MOST_LABELS - 1) :] if len(labels) >= MOST_LABELS else labels[1:]
    while labels:
        names.append(".".join(labels))
        labels = labels[1:]
    return names


def _organizational(domain: str, walked: Sequence[tuple[str, DmarcRecord]]) -> str:
    """Return the organizational domain that follows from a walk (4.10.2)."""
    for name, record in walked:
        if record.psd == "n":
            return name
        if record.psd == "y" and name != domain:
            # One label below the public suffix.
            below = domain.removesuffix(f".{name}")
            return f"{below.rpartition('.')[2]}.{name}"
    return walked[-1][0] if walked else domain


async def _exists(domain: str, lookup: SpfLookup) -> bool:
    """Return whether there is a domain of this name: it has MX or addresses (3.2)."""
    for ask in (lookup.mx, lookup.addresses, lookup.aaaa):
        answer = await ask(domain)
        if answer.status == "failed":
            raise _LookupFailed
        if answer.status == "found":
            return True
        if answer.status == "no_name":
            return False
    return False
