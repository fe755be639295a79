"""One inspection of a domain in DNS: every record that it needs is queried and compared, and what is wrong
gets advice. Nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from pillarbox.domains.checks import check_queries
from pillarbox.domains.checks.check_queries import CheckState, KeyRow
from pillarbox.domains.checks.record_results import NEXT_KEY, RecordResult, record_result
from pillarbox.domains.dns.advice import AdviceCase, advised, follow_ups
from pillarbox.domains.dns.matching import (
    ExpectedRecord,
    Match,
    RecordKind,
    RecordVerdict,
    judge,
    judge_tracking,
)
from pillarbox.domains.dns.records import needed
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.names import relative
from pillarbox.domains.queries import Domain
from pillarbox.domains.status import RecordKey
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.network.dns_answers import DnsAnswers, DnsQuestion, UncachedDns, settled
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import iso_style

Type = Literal["MX", "TXT", "CNAME"]


@dataclass(frozen=True, slots=True)
class ExpectedRecords:
    """The records that a domain should have in DNS, by the name under which they are found. `old_keys` are
    public keys that were replaced."""

    domain: str
    records: Mapping[str, ExpectedRecord]
    old_keys: tuple[str, ...] = ()


def wanted_of(
    domain: Domain, keys: Sequence[KeyRow], here: MailInstallation, *, proof: bool
) -> ExpectedRecords:
    """Return the records that the domain should have, that of a waiting key included."""
    records = {
        key.value: expected_of(key, domain, here)
        for key in needed(domain, proof=proof)
        if key is not RecordKey.TRACKING_CAA
    }
    for key in keys:
        if key.waiting:
            records[NEXT_KEY] = _dkim(domain, key.selector, key.public_key)
    old = tuple(key.public_key for key in keys if not key.active and not key.waiting)
    return ExpectedRecords(domain.name, records, old)


def expected_of(key: RecordKey, domain: Domain, here: MailInstallation) -> ExpectedRecord:
    """Return one record as it should be in DNS."""
    match key:
        case RecordKey.SPF_MX:
            return _expected(RecordKind.SPF_MX, domain.return_path, domain, "MX", here.hostname)
        case RecordKey.SPF_TXT:
            return _expected(RecordKind.SPF_TXT, domain.return_path, domain, "TXT", here.spf)
        case RecordKey.DKIM:
            return _dkim(domain, domain.selector, domain.public_key)
        case RecordKey.RECEIVING:
            return ExpectedRecord(
                kind=RecordKind.RECEIVING,
                owner=domain.name,
                shown=domain.name,
                type="MX",
                value=here.hostname,
            )
        case _:
            label = domain.tracking_subdomain or ""
            return _expected(RecordKind.TRACKING, label, domain, "CNAME", here.tracking_host)


def _expected(kind: RecordKind, label: str, domain: Domain, type: Type, value: str) -> ExpectedRecord:
    return ExpectedRecord(
        kind=kind,
        owner=f"{label}.{domain.name}",
        shown=relative(label, domain.name),
        type=type,
        value=value.lower(),
    )


def _dkim(domain: Domain, selector: str, public_key: str) -> ExpectedRecord:
    label = f"{selector}._domainkey"
    owner, shown = f"{label}.{domain.name}", relative(label, domain.name)
    return ExpectedRecord(kind=RecordKind.DKIM, owner=owner, shown=shown, type="TXT", value=f"p={public_key}")


class Inspector:
    """Inspects the DNS records of domains."""

    def __init__(self, dns: UncachedDns, clock: Clock) -> None:
        self._dns = dns
        self._clock = clock

    async def inspect(self, expected_records: ExpectedRecords) -> dict[str, RecordResult]:
        """Return the result for each record as DNS is now. Every question is asked once."""
        queries_once = _QueriesOnce(self._dns)
        found = await asyncio.gather(
            *(
                self._record(queries_once, expected_records, expected)
                for expected in expected_records.records.values()
            )
        )
        return dict(zip(expected_records.records, found, strict=True))

    async def _record(
        self, queries_once: _QueriesOnce, expected_records: ExpectedRecords, expected: ExpectedRecord
    ) -> RecordResult:
        case = AdviceCase(
            expected,
            await self._verdict(queries_once, expected),
            expected_records.domain,
            expected_records.old_keys,
        )
        asked = follow_ups(case)
        answers = await asyncio.gather(*(queries_once.ask(extra.question) for extra in asked))
        extra_answers = [(extra, settled(found)) for extra, found in zip(asked, answers, strict=True)]
        at = iso_style(self._clock.now())
        return record_result(expected, case.verdict, at, advised(case, extra_answers))

    async def _verdict(self, queries_once: _QueriesOnce, expected: ExpectedRecord) -> RecordVerdict:
        answers = await queries_once.ask(DnsQuestion(expected.owner, expected.type))
        if expected.kind is not RecordKind.TRACKING or judge(expected, answers).match is Match.MATCH:
            return judge(expected, answers)
        theirs, ours = await asyncio.gather(
            queries_once.ask(DnsQuestion(expected.owner, "ADDRESSES")),
            queries_once.ask(DnsQuestion(expected.value, "ADDRESSES")),
        )
        return judge_tracking(expected, answers, theirs, ours)


class _QueriesOnce:
    """Asks each question once in an inspection."""

    def __init__(self, dns: UncachedDns) -> None:
        self._dns = dns
        self._asked: dict[DnsQuestion, asyncio.Task[DnsAnswers]] = {}

    async def ask(self, question: DnsQuestion) -> DnsAnswers:
        task = self._asked.get(question)
        if task is None:
            task = self._asked[question] = asyncio.ensure_future(self._dns.ask(question))
        return await task


async def checked(db: TeamDb, domain_id: UUID) -> CheckState | None:
    """Return the result of the last check of a domain; None where the team has no such domain."""
    return await check_queries.checked(db, domain_id)


async def keys(db: TeamDb, domain_id: UUID) -> list[KeyRow]:
    """Return the keys of a domain, the oldest first."""
    return await check_queries.keys(db, domain_id)
