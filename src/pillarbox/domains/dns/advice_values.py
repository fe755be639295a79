"""Why a value is not the right one, by what it looks like. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, NamedTuple

from pillarbox.domains.dns.matching import (
    SPF_VERSION,
    ExpectedRecord,
    RecordKind,
    dkim_tags,
    fits,
    mx_records,
    spf_records,
    spf_terms,
    spf_wanted,
    without_spaces,
)
from pillarbox.domains.names import registrable

LONGEST_QUOTED: Final = 100
SHORTEST_PREFIX: Final = 16

_QUOTES = re.compile("[\"'`\u00b4\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\\\\]")


class Diagnosis(NamedTuple):
    """A row of the table of advice, and what to fill into its words."""

    code: str
    words: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class WrongValues:
    """Values that are not what is expected. `old_keys` are public keys that this domain had."""

    expected: ExpectedRecord
    values: Sequence[str]
    domain: str
    old_keys: Sequence[str] = ()


def diagnosed(wrong: WrongValues) -> Diagnosis:
    """Return the most specific diagnosis of wrong values."""
    return next(_RULES[wrong.expected.kind](wrong))


def warned(expected: ExpectedRecord, values: Sequence[str]) -> list[Diagnosis]:
    """Return warnings about values that are right, but unwise."""
    if expected.kind is RecordKind.DKIM:
        return list(_dkim_warnings(expected, values))
    if expected.kind is RecordKind.SPF_TXT:
        return list(_spf_warnings(expected, values))
    return []


def quoted(values: Sequence[str]) -> str:
    """Return the values as they stand in a sentence."""
    shown = [value if len(value) <= LONGEST_QUOTED else value[:LONGEST_QUOTED] + "…" for value in values[:3]]
    return ", ".join(f"`{value}`" for value in shown)


def _dkim(wrong: WrongValues) -> Iterator[Diagnosis]:
    found = [_dkim_value(wrong, value) for value in wrong.values]
    vague = ("other_key", "not_a_key")
    yield from (diagnosis for diagnosis in found if diagnosis.code not in vague)
    yield from found


def _dkim_value(wrong: WrongValues, value: str) -> Diagnosis:
    ours = dkim_tags(wrong.expected.value)["p"]
    bare = _QUOTES.sub("", value)
    if bare != value and fits(wrong.expected, [bare]):
        return Diagnosis("quotes_kept", {"found": quoted([value])})
    theirs = dkim_tags(bare).get("p")
    if theirs is None or "=" in theirs.rstrip("="):
        return _dkim_without_key(ours, value, without_spaces(bare))
    if not theirs:
        return Diagnosis("empty_key")
    if theirs in wrong.old_keys:
        return Diagnosis("old_key")
    if ours.startswith(theirs) and len(theirs) >= SHORTEST_PREFIX:
        return Diagnosis("truncated_key", {"length": str(len(theirs)), "whole": str(len(ours))})
    if theirs.lower() == ours.lower():
        return Diagnosis("case_changed", {"case": "lower case" if theirs.islower() else "another case"})
    if "+" not in theirs and theirs == ours.replace("+", ""):
        return Diagnosis("plus_lost")
    return Diagnosis("other_key")


def _dkim_without_key(ours: str, value: str, bare: str) -> Diagnosis:
    if ours not in bare:
        return Diagnosis("not_a_key", {"found": quoted([value])})
    if "p=" in bare or "p:" in bare:
        return Diagnosis("missing_semicolon", {"found": quoted([value])})
    return Diagnosis("no_p_tag")


def _dkim_warnings(expected: ExpectedRecord, values: Sequence[str]) -> Iterator[Diagnosis]:
    keys = [value for value in values if "p" in dkim_tags(value)]
    if len(keys) > 1:
        yield Diagnosis("two_keys", {"count": str(len(keys))})
    tags = dkim_tags(next(value for value in keys if fits(expected, [value])))
    for name, allowed in DKIM_ALLOWED.items():
        if name in tags and not allowed & set(tags[name].split(":")):
            yield Diagnosis("dkim_tag", {"found": f"{name}={tags[name]}"})
            return


DKIM_ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "v": frozenset({"DKIM1"}),
    "k": frozenset({"rsa"}),
    "h": frozenset({"sha256"}),
    "s": frozenset({"*", "email"}),
}
"""The values of which a tag must have one, where the tag is there (RFC 6376 section 3.6.1)."""


def _spf(wrong: WrongValues) -> Iterator[Diagnosis]:
    ours = wrong.expected.value
    records = spf_records(wrong.values)
    if len(records) > 1:
        yield Diagnosis("two_spf", {"count": str(len(records)), "merged": _merged(records, ours)})
    elif records:
        yield _spf_record(wrong, records[0])
    for value in wrong.values:
        bare = _QUOTES.sub("", value)
        if bare != value and fits(wrong.expected, [bare.strip()]):
            yield Diagnosis("quotes_kept", {"found": quoted([value])})
        if "spf" in value.lower() or any(term in value.lower() for term in spf_wanted(ours)):
            yield Diagnosis("spf_version", {"found": quoted([value])})
    yield Diagnosis("spf_not_there", {"found": quoted(wrong.values)})


def _spf_record(wrong: WrongValues, record: str) -> Diagnosis:
    terms = spf_terms(record)
    missing = [term for term in spf_wanted(wrong.expected.value) if term not in terms]
    merged = _merged([record], wrong.expected.value)
    for term in missing:
        if negated := next((found for found in terms if found[0] in "-~?" and found[1:] == term), None):
            words = {"missing": f"`{term}`", "found": f"`{negated}`", "merged": merged}
            return Diagnosis("spf_negated", words)
        for ending in _endings(wrong):
            if f"{term}.{ending}" in terms:
                words = {"found": f"{term}.{ending}".partition(":")[2], "target": term.partition(":")[2]}
                return Diagnosis("target_doubled", words)
    return Diagnosis("spf_mechanism", {"missing": quoted(missing), "merged": merged})


def _spf_warnings(expected: ExpectedRecord, values: Sequence[str]) -> Iterator[Diagnosis]:
    [record] = spf_records(values)
    terms = spf_terms(record)
    ends = [at for at, term in enumerate(terms) if _is_all(term)]
    late = [term for term in spf_wanted(expected.value) if ends and terms.index(term) > ends[0]]
    if late:
        merged = _merged([record], expected.value)
        yield Diagnosis("spf_after_all", {"missing": quoted(late), "merged": merged})


def merged_spf(values: Sequence[str], ours: str) -> str | None:
    """Return the one SPF record to publish where there are some already; None where there is none."""
    records = spf_records(values)
    return _merged(records, ours) if records else None


def _merged(records: Sequence[str], ours: str) -> str:
    """Return one SPF record with all that stands in these and in ours, and at its end the best of
    their `all`."""
    wanted = spf_wanted(ours)
    terms = [term for record in sorted(records) for term in spf_terms(record)]
    kept = [term for term in terms if not _is_all(term) and term.lstrip("-~?") not in wanted]
    ends = sorted((term for term in terms if _is_all(term)), key=ENDS.index)
    return " ".join([SPF_VERSION, *dict.fromkeys([*wanted, *kept]), ends[0] if ends else "~all"])


ENDS: Final = ("~all", "?all", "-all", "all")


def _is_all(term: str) -> bool:
    return term.lstrip("+-~?") == "all"


def _mx(wrong: WrongValues) -> Iterator[Diagnosis]:
    host = wrong.expected.value
    found = mx_records(wrong.values)
    others = [exchange for exchange in found if exchange.host != host]
    if any(exchange.host == "." for exchange in others):
        yield Diagnosis("null_mx")
    if len(others) < len(found):
        mine = min(exchange.preference for exchange in found if exchange.host == host)
        before = [exchange for exchange in others if exchange.preference < mine]
        rivals = before or [exchange for exchange in others if exchange.preference == mine]
        code = "higher_preference_mx" if before else "equal_preference_mx"
        yield Diagnosis(code, {"found": ", ".join(f"{each.host} ({each.preference})" for each in rivals[:3])})
    doubled = {f"{host}.{ending}" for ending in _endings(wrong)}
    for exchange in others:
        if exchange.host in doubled:
            yield Diagnosis("target_doubled", {"found": exchange.host, "target": host})
        if _is_address(exchange.host):
            yield Diagnosis("mx_address", {"found": exchange.host})
    code = "replace_mx" if wrong.expected.kind is RecordKind.RECEIVING else "other_mx"
    yield Diagnosis(code, {"found": ", ".join(exchange.host for exchange in others[:3])})


def _cname(wrong: WrongValues) -> Iterator[Diagnosis]:
    host = wrong.expected.value
    if all(_is_address(value) for value in wrong.values):
        yield Diagnosis("address_instead", {"found": ", ".join(wrong.values[:3])})
    if wrong.values[0] in {f"{host}.{ending}" for ending in _endings(wrong)}:
        yield Diagnosis("target_doubled", {"found": wrong.values[0], "target": host})
    yield Diagnosis("other_target", {"found": wrong.values[0]})


def _endings(wrong: WrongValues) -> set[str]:
    """Return the names that a provider may have added to a value without a final dot."""
    return {wrong.domain, registrable(wrong.domain), wrong.expected.owner}


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


_RULES: Final[Mapping[RecordKind, Callable[[WrongValues], Iterator[Diagnosis]]]] = {
    RecordKind.SPF_MX: _mx,
    RecordKind.SPF_TXT: _spf,
    RecordKind.DKIM: _dkim,
    RecordKind.RECEIVING: _mx,
    RecordKind.TRACKING: _cname,
}
