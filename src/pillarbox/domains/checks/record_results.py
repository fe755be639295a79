"""What a check found of each record: what was expected, what was seen, where and when. Kept as JSON in
`domains.checks.record_results`, by the kind of record; `dkim_next` is the key that waits for its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from pillarbox.domains.checks.transitions import Outcome
from pillarbox.domains.dns.advice import Advice
from pillarbox.domains.dns.matching import Expected, Match, Verdict

NEXT_KEY: Final = "dkim_next"
LONGEST_VALUE: Final = 600
MOST_VALUES: Final = 10

OUTCOMES: Final[Mapping[Match, Outcome]] = {
    Match.MATCH: Outcome.MATCH,
    Match.DIFFERENT: Outcome.MISMATCH,
    Match.ABSENT: Outcome.MISMATCH,
    Match.UNKNOWN: Outcome.UNKNOWN,
}


class RecordResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One record in one check. `match` is `match`, `different`, `absent` or `unknown`; `where` is the server
    that said so, `through` the names that CNAMEs led to."""

    name: str
    type: str
    expected: str
    match: str
    found: tuple[str, ...]
    where: str
    at: str
    through: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()

    def answers(self, expected: Expected) -> bool:
        """Whether this was found of exactly the record that is expected now."""
        return (self.name, self.type, self.expected) == (expected.owner, expected.type, expected.value)

    @property
    def outcome(self) -> Outcome:
        return OUTCOMES[Match(self.match)]


Findings = Mapping[str, RecordResult]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, RecordResult]).decode


def record_result(expected: Expected, verdict: Verdict, at: str, advice: tuple[Advice, ...]) -> RecordResult:
    """A finding, with what was seen cut to what people can read."""
    sighting = verdict.sighting
    values = sighting.values[:MOST_VALUES]
    return RecordResult(
        name=expected.owner,
        type=expected.type,
        expected=expected.value,
        match=verdict.match.value,
        found=tuple(
            value if len(value) <= LONGEST_VALUE else value[:LONGEST_VALUE] + "…" for value in values
        ),
        where=sighting.server,
        at=at,
        through=sighting.through,
        advice=advice,
    )


def encoded(findings: Findings) -> str:
    """As it is stored."""
    return _encode(findings).decode()


def decoded(text: str) -> dict[str, RecordResult]:
    """What was stored."""
    return _decode(text)
