"""When a record counts as published (domains.md section 2). Pure: DNS answers go in, a verdict comes out.

Names are compared without case and final dot (`DnsAnswer` has them so), CNAMEs are followed already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_network
from typing import Final, Literal, NamedTuple

from pillarbox.kernel.network.dns_answers import AnswerKind, DnsAnswer, DnsAnswers, settled

SPF_VERSION: Final = "v=spf1"
COUNTED: Final = ("include:", "a:", "ip4:", "ip6:")
"""Mechanisms of our SPF value that a domain's own record must name."""

_SPACE = re.compile(r"\s+", re.ASCII)


class RecordKind(Enum):
    """The purpose of a record; it decides which rule applies."""

    SPF_MX = "spf_mx"
    SPF_TXT = "spf_txt"
    DKIM = "dkim"
    RECEIVING = "receiving"
    TRACKING = "tracking"


@dataclass(frozen=True, slots=True)
class ExpectedRecord:
    """One record that should be in DNS. `owner` is its full name, `shown` what the API calls it, `value` is
    without the quotes that the API shows around SPF."""

    kind: RecordKind
    owner: str
    shown: str
    type: Literal["MX", "TXT", "CNAME"]
    value: str


class Match(Enum):
    """The verdict on one record."""

    MATCH = "match"
    DIFFERENT = "different"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class RecordVerdict(NamedTuple):
    """The verdict, and the DNS answer that it rests on."""

    match: Match
    answer: DnsAnswer


class MxRecord(NamedTuple):
    """One MX record; the host of a null MX is `.`."""

    preference: int
    host: str


def judge(expected: ExpectedRecord, answers: DnsAnswers) -> RecordVerdict:
    """Return the verdict on the answers of several servers: one right answer is enough, and the record is
    unknown only where none of them answered."""
    verdicts = [RecordVerdict(_of_one(expected, answer), answer) for answer in answers]
    for match in (Match.MATCH, Match.DIFFERENT, Match.ABSENT):
        for verdict in verdicts:
            if verdict.match is match:
                return verdict
    return verdicts[0]


def judge_tracking(
    expected: ExpectedRecord, cnames: DnsAnswers, theirs: DnsAnswers, ours: DnsAnswers
) -> RecordVerdict:
    """Accept a CNAME to our host, or, where a provider flattens it, exactly our host's addresses. `theirs`
    and `ours` are the addresses of the record's name and of our host."""
    plain = judge(expected, cnames)
    if plain.match in (Match.MATCH, Match.UNKNOWN):
        return plain
    wanted = settled(ours)
    for answer in theirs:
        if answer.kind is AnswerKind.VALUES and set(answer.values) == set(wanted.values):
            return RecordVerdict(Match.MATCH, answer)
    found = settled(theirs)
    if found.kind is AnswerKind.TROUBLE:
        return RecordVerdict(Match.UNKNOWN, found)
    if found.kind is AnswerKind.VALUES and wanted.kind is AnswerKind.TROUBLE and plain.match is Match.ABSENT:
        return RecordVerdict(Match.UNKNOWN, wanted)
    if found.kind is AnswerKind.VALUES and plain.match is Match.ABSENT:
        return RecordVerdict(Match.DIFFERENT, found)
    return plain


def fits(expected: ExpectedRecord, values: Sequence[str]) -> bool:
    """Return whether these values are what is expected."""
    return RULES[expected.kind](expected.value, values)


def mx_records(values: Sequence[str]) -> list[MxRecord]:
    """Return the MX records, the most preferred first."""
    found = []
    for value in values:
        preference, _, host = value.partition(" ")
        found.append(MxRecord(int(preference), host))
    return sorted(found)


def spf_records(values: Sequence[str]) -> list[str]:
    """Return the TXT values that are SPF records (RFC 7208 section 4.5)."""
    return [value for value in values if value.lower().split(" ")[0] == SPF_VERSION]


def spf_terms(record: str) -> list[str]:
    """Return the terms after the version, in lower case, networks in one form and without the
    default qualifier."""
    return [_term(term) for term in record.lower().split()[1:]]


def spf_wanted(ours: str) -> list[str]:
    """Return the mechanisms of our value that a record must name."""
    return [term for term in spf_terms(ours) if term.startswith(COUNTED)]


def dkim_tags(value: str) -> dict[str, str]:
    """Return the tags of a key record (RFC 6376 section 3.2) without whitespace; the first of two
    equal ones."""
    tags: dict[str, str] = {}
    for part in value.split(";"):
        name, equals, content = part.partition("=")
        if equals:
            tags.setdefault(name.strip(), without_spaces(content))
    return tags


def without_spaces(text: str) -> str:
    """Return the text without whitespace."""
    return _SPACE.sub("", text)


def _spf_mx(host: str, values: Sequence[str]) -> bool:
    return any(record.host == host for record in mx_records(values))


def _receiving(host: str, values: Sequence[str]) -> bool:
    first, *others = mx_records(values)
    same = [record for record in others if record.preference == first.preference]
    return first.host == host and all(record.host == host for record in same)


def _spf_txt(ours: str, values: Sequence[str]) -> bool:
    records = spf_records(values)
    return len(records) == 1 and set(spf_wanted(ours)) <= set(spf_terms(records[0]))


def _dkim(ours: str, values: Sequence[str]) -> bool:
    key = dkim_tags(ours)["p"]
    return any(dkim_tags(value).get("p") == key for value in values)


def _tracking(host: str, values: Sequence[str]) -> bool:
    return host in values


RULES: Final[Mapping[RecordKind, Callable[[str, Sequence[str]], bool]]] = {
    RecordKind.SPF_MX: _spf_mx,
    RecordKind.SPF_TXT: _spf_txt,
    RecordKind.DKIM: _dkim,
    RecordKind.RECEIVING: _receiving,
    RecordKind.TRACKING: _tracking,
}
"""Given the value that is expected and at least one that was found."""


def _of_one(expected: ExpectedRecord, answer: DnsAnswer) -> Match:
    if answer.kind is AnswerKind.TROUBLE:
        return Match.UNKNOWN
    if answer.kind is not AnswerKind.VALUES:
        return Match.ABSENT
    return Match.MATCH if fits(expected, answer.values) else Match.DIFFERENT


def _term(term: str) -> str:
    term = term.removeprefix("+")
    mechanism, colon, argument = term.partition(":")
    if colon and mechanism in ("ip4", "ip6"):
        try:
            return f"{mechanism}:{ip_network(argument, strict=False)}"
        except ValueError:
            return term
    return term.removesuffix(".")
