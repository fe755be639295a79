"""The result of a check for each record: the expected value, what DNS answered, which server and when.
Stored as JSON in the column `domains.findings`, by the kind of record; `dkim_next` is the key that waits
for its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from pillarbox.domains.checks.transitions import RecordOutcome
from pillarbox.domains.dns.advice import Advice
from pillarbox.domains.dns.matching import ExpectedRecord, Match, RecordVerdict

NEXT_KEY: Final = "dkim_next"
LONGEST_VALUE: Final = 600
MOST_VALUES: Final = 10

OUTCOMES: Final[Mapping[Match, RecordOutcome]] = {
    Match.MATCH: RecordOutcome.MATCH,
    Match.DIFFERENT: RecordOutcome.MISMATCH,
    Match.ABSENT: RecordOutcome.MISMATCH,
    Match.UNKNOWN: RecordOutcome.UNKNOWN,
}


class RecordResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One record in one check. `match` is `match`, `different`, `absent` or `unknown`; `where` is the server
    that answered, `through` the names that CNAMEs led to."""

    name: str
    type: str
    expected: str
    match: str
    found: tuple[str, ...]
    where: str
    at: str
    through: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()

    def answers(self, expected: ExpectedRecord) -> bool:
        """Return whether this is about exactly the record that is expected now."""
        return (self.name, self.type, self.expected) == (expected.owner, expected.type, expected.value)

    @property
    def outcome(self) -> RecordOutcome:
        return OUTCOMES[Match(self.match)]


RecordResults = Mapping[str, RecordResult]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, RecordResult]).decode


def record_result(
    expected: ExpectedRecord, verdict: RecordVerdict, instant: str, advice: tuple[Advice, ...]
) -> RecordResult:
    """Return the result for one record; long values and long lists are cut."""
    answer = verdict.answer
    values = answer.values[:MOST_VALUES]
    return RecordResult(
        name=expected.owner,
        type=expected.type,
        expected=expected.value,
        match=verdict.match.value,
        found=tuple(
            value if len(value) <= LONGEST_VALUE else value[:LONGEST_VALUE] + "…" for value in values
        ),
        where=answer.server,
        at=instant,
        through=answer.through,
        advice=advice,
    )


def encoded(results: RecordResults) -> str:
    """Return the result as it is stored."""
    return _encode(results).decode()


def decoded(text: str) -> dict[str, RecordResult]:
    """Return the results that `domains.findings` holds as JSON."""
    return _decode(text)
