"""SPF: may this client send for this domain (RFC 7208, SPF-01)?

    found = await spf.check(client_ip, helo, mail_from, lookup)
    found.result        # pass, fail, softfail, neutral, none, temperror, permerror

DNS is asked only through `lookup`. At most ten terms that ask, two void answers, ten names of an MX or
PTR are followed (4.6.4); the caller bounds the time and takes a check that did not end for a temperror.
Nothing here raises for what a record, an answer or a sender holds.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, TypeVar

from pillarbox.mail.authentication import spf_macros, spf_record
from pillarbox.mail.authentication.spf_macros import IpAddress, MacroValues
from pillarbox.mail.authentication.spf_record import Mechanism, RecordError, SpfRecord
from pillarbox.mail.smtp.mx import LookupResult

T = TypeVar("T")
Result = Literal["pass", "fail", "softfail", "neutral", "none", "temperror", "permerror"]

MOST_TERMS: Final = 10
MOST_VOID: Final = 2
MOST_NAMES: Final = 10
LONGEST_EXPLANATION: Final = 500

_LABEL = re.compile(r"[^.]{1,63}")
_RESULTS: Final[dict[str, Result]] = {
    "pass": "pass", "fail": "fail", "softfail": "softfail", "neutral": "neutral",
}  # fmt: skip


class SpfLookup(Protocol):
    """The questions that SPF asks of DNS; CNAMEs are followed by whoever answers."""

    async def txt(self, name: str) -> LookupResult[str]:
        """Return the TXT records, each with its strings joined."""
        ...

    async def mx(self, name: str) -> LookupResult[tuple[int, str]]:
        """Return the preference and exchange of each MX record."""
        ...

    async def addresses(self, name: str) -> LookupResult[str]:
        """Return the A records."""
        ...

    async def aaaa(self, name: str) -> LookupResult[str]:
        """Return the AAAA records."""
        ...

    async def ptr(self, name: str) -> LookupResult[str]:
        """Return the names at an in-addr.arpa or ip6.arpa name."""
        ...


@dataclass(frozen=True, slots=True)
class Spf:
    """The answer, about which identity it was asked, and why it came out so.

    `mechanism` is the directive that matched; `explanation` is the domain owner's text for a fail.
    """

    result: Result
    identity: Literal["mailfrom", "helo"]
    domain: str
    mechanism: str | None = None
    explanation: str | None = None
    problem: str | None = None

    @property
    def passed(self) -> bool:
        return self.result == "pass"


async def check(
    client_ip: str,
    helo: str,
    mail_from: str,
    lookup: SpfLookup,
    *,
    receiver: str = "",
    seconds: int | None = None,
) -> Spf:
    """Return the result for MAIL FROM (bare address), or for HELO where the sender is null (2.3, 2.4)."""
    identity: Literal["mailfrom", "helo"] = "mailfrom" if mail_from else "helo"
    local, at, domain = mail_from.rpartition("@")
    if not at:
        local, domain = ("postmaster", helo) if not mail_from else ("postmaster", mail_from)
    sender = f"{local or 'postmaster'}@{domain}"
    facts = MacroValues(
        sender=sender,
        domain=domain,
        ip=_plain_ip(client_ip),
        helo=helo,
        receiver=receiver,
        seconds=int(time.time()) if seconds is None else seconds,
    )
    try:
        answer = await _Check(lookup, facts).host(domain, facts)
    except _CheckEnded as ended:
        return Spf(ended.result, identity, domain, problem=ended.problem)
    return Spf(
        result=answer.result,
        identity=identity,
        domain=domain,
        mechanism=answer.mechanism,
        explanation=answer.explanation,
        problem=answer.problem,
    )


@dataclass(frozen=True, slots=True)
class _RecordAnswer:
    result: Result
    mechanism: str | None = None
    explanation: str | None = None
    problem: str | None = None


class _CheckEnded(Exception):  # noqa: N818 - it carries a result, not a mistake of ours
    """The whole check has this result, however deep it was (4.6, 5.2)."""

    def __init__(self, result: Result, problem: str) -> None:
        super().__init__(problem)
        self.result = result
        self.problem = problem


class _Check:
    """One check with what it has spent."""

    def __init__(self, lookup: SpfLookup, facts: MacroValues) -> None:
        self._lookup = lookup
        self._ip = facts.ip
        self._terms = 0
        self._void = 0
        self._validated: list[str] | None = None

    async def host(self, domain: str, facts: MacroValues, *, is_included: bool = False) -> _RecordAnswer:
        """Return the result of this domain's record: `check_host` of section 4."""
        if not _is_name(domain):
            return _RecordAnswer("none", problem="this is no domain name")
        texts = await self._texts(domain)
        if not texts:
            return _RecordAnswer("none")
        if len(texts) > 1:
            raise _CheckEnded("permerror", f"{domain} has {len(texts)} SPF records")
        try:
            record = spf_record.parse(texts[0])
        except RecordError as error:
            raise _CheckEnded("permerror", str(error)) from None
        for mechanism in record.mechanisms:
            if await self._matches(mechanism, facts):
                result = _RESULTS[mechanism.result]
                explanation = None
                if result == "fail" and not is_included:
                    explanation = await self._explanation(record, facts)
                return _RecordAnswer(result, str(mechanism), explanation)
        if record.redirect is not None:
            return await self._redirected(record.redirect, facts, is_included=is_included)
        return _RecordAnswer("neutral")

    async def _texts(self, domain: str) -> list[str]:
        answer = await self._lookup.txt(domain)
        if answer.status == "failed":
            raise _CheckEnded("temperror", f"the TXT look-up of {domain} failed")
        return [text for text in answer.records if spf_record.is_spf(text)]

    async def _redirected(self, target: str, facts: MacroValues, *, is_included: bool) -> _RecordAnswer:
        """Return the result of a redirect (section 6.1); the explanation is then that of the other
        domain (6.2)."""
        self._spend_term()
        domain = await self._target(target, facts)
        answer = await self.host(domain, _at(facts, domain), is_included=is_included)
        if answer.result == "none":
            raise _CheckEnded("permerror", f"redirect leads to {domain}, which has no SPF record")
        return answer

    async def _matches(self, mechanism: Mechanism, facts: MacroValues) -> bool:
        match mechanism.name:
            case "all":
                return True
            case "ip4" | "ip6":
                network = mechanism.network
                return network is not None and network.version == self._ip.version and self._ip in network
        self._spend_term()
        domain = facts.domain if mechanism.target is None else await self._target(mechanism.target, facts)
        match mechanism.name:
            case "include":
                return await self._includes(domain, facts)
            case "a":
                return self._is_in(await self._addresses(domain), mechanism)
            case "mx":
                return await self._matches_mx(domain, mechanism)
            case "ptr":
                return await self._matches_ptr(domain)
        return bool(await self._found(domain, self._lookup.addresses))

    async def _includes(self, domain: str, facts: MacroValues) -> bool:
        """Return whether an include matches (section 5.2): a record that is missing or wrong makes
        ours wrong."""
        answer = await self.host(domain, _at(facts, domain), is_included=True)
        if answer.result == "none":
            raise _CheckEnded("permerror", f"include leads to {domain}, which has no SPF record")
        return answer.result == "pass"

    async def _matches_mx(self, domain: str, mechanism: Mechanism) -> bool:
        exchanges = await self._found(domain, self._lookup.mx)
        if len(exchanges) > MOST_NAMES:
            raise _CheckEnded("permerror", f"{domain} has more than {MOST_NAMES} MX records")
        for _, exchange in sorted(exchanges):
            if _is_name(exchange) and self._is_in(await self._addresses(exchange), mechanism):
                return True
        return False

    async def _matches_ptr(self, domain: str) -> bool:
        """Return whether one of the client's names that lead back to it is the domain or below it
        (section 5.5)."""
        domain = domain.rstrip(".").lower()
        return any(name == domain or name.endswith(f".{domain}") for name in await self._names())

    async def _names(self) -> list[str]:
        """Return the names of the client that lead back to its address; a failed look-up is none of them."""
        if self._validated is None:
            self._validated = []
            answer = await self._lookup.ptr(spf_macros.reverse_name(self._ip))
            self._count_void(answer)
            for name in [name.rstrip(".").lower() for name in answer.records][:MOST_NAMES]:
                back = await self._ask_addresses(name) if _is_name(name) else None
                if back is not None and any(_plain_ip(address) == self._ip for address in back.records):
                    self._validated.append(name)
        return self._validated

    async def _addresses(self, name: str) -> Sequence[str]:
        return await self._found(name, self._ask_addresses)

    async def _ask_addresses(self, name: str) -> LookupResult[str]:
        """Return the addresses of the client's kind."""
        return await (self._lookup.addresses(name) if self._ip.version == 4 else self._lookup.aaaa(name))

    async def _found(self, name: str, ask: Callable[[str], Awaitable[LookupResult[T]]]) -> Sequence[T]:
        """Return the records at a name; none for what is no name, temperror for a look-up that failed (5)."""
        if not _is_name(name):
            return ()
        answer = await ask(name)
        if answer.status == "failed":
            raise _CheckEnded("temperror", f"a look-up of {name} failed")
        self._count_void(answer)
        return answer.records

    def _count_void(self, answer: LookupResult[Any]) -> None:
        """Count an answer without records: many are a sign of a broken or hostile record (section 4.6.4)."""
        if answer.status in ("no_name", "no_data"):
            self._void += 1
            if self._void > MOST_VOID:
                raise _CheckEnded("permerror", f"more than {MOST_VOID} look-ups found nothing")

    def _spend_term(self) -> None:
        self._terms += 1
        if self._terms > MOST_TERMS:
            raise _CheckEnded("permerror", f"more than {MOST_TERMS} terms ask DNS")

    async def _target(self, spec: str, facts: MacroValues) -> str:
        """Return the domain name of a domain-spec (7)."""
        return spf_macros.shortened(await self._expanded(spec, facts))

    async def _expanded(self, text: str, facts: MacroValues) -> str:
        validated = "unknown"
        if "p" in spf_macros.letters(text):
            validated = _best(await self._names(), facts.domain)
        return spf_macros.expanded(text, facts, validated)

    async def _explanation(self, record: SpfRecord, facts: MacroValues) -> str | None:
        """Return the explanation that the domain's owner publishes for a fail (6.2); "" where it cannot be
        had."""
        if record.explanation is None:
            return None
        try:
            name = await self._target(record.explanation, facts)
            answer = await self._lookup.txt(name) if _is_name(name) else None
            if answer is None or len(answer.records) != 1:
                return None
            text = answer.records[0]
            if not text.isascii() or not spf_macros.EXPLAIN_STRING.fullmatch(text):
                return None
            return (await self._expanded(text, facts))[:LONGEST_EXPLANATION]
        except _CheckEnded:
            return None

    def _is_in(self, addresses: Sequence[str], mechanism: Mechanism) -> bool:
        prefix = mechanism.prefix4 if self._ip.version == 4 else mechanism.prefix6
        return any(
            self._ip in ipaddress.ip_network((_plain_ip(address), prefix), strict=False)
            for address in addresses
            if _plain_ip(address).version == self._ip.version
        )


def _at(facts: MacroValues, domain: str) -> MacroValues:
    return replace(facts, domain=domain)


def _best(names: Sequence[str], domain: str) -> str:
    """Return the validated name for `%{p}`: the domain itself, else one below it, else any (7.3)."""
    domain = domain.rstrip(".").lower()
    if domain in names:
        return domain
    below = [name for name in names if name.endswith(f".{domain}")]
    return next(iter(below or names), "unknown")


def _is_name(name: str) -> bool:
    """Return whether it is a name of two labels or more that DNS can be asked about (4.3)."""
    labels = name.removesuffix(".").split(".")
    return (
        len(labels) > 1
        and len(name) <= spf_macros.LONGEST_NAME + 1
        and not name.startswith("[")
        and all(map(_LABEL.fullmatch, labels))
    )


@lru_cache(maxsize=4096)
def _plain_ip(address: str) -> IpAddress:
    """Return the address; an IPv4 address in IPv6 form is the IPv4 address (5)."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    return ip
