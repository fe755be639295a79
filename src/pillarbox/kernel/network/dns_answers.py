"""DNS questions and DNS answers as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, Protocol

Kind = Literal["MX", "TXT", "CNAME", "PTR", "ADDRESSES"]


class DnsQuestion(NamedTuple):
    """`name` is ASCII without the final dot. CNAMEs are followed, but for the kind that asks for them;
    `ADDRESSES` is A and AAAA together."""

    name: str
    kind: Kind


class AnswerKind(Enum):
    """The four kinds of DNS answer."""

    VALUES = "values"
    NO_DATA = "no_data"
    NO_NAME = "no_name"
    TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class DnsAnswer:
    """One answer to one question.

    `values`, where there are any: TXT with its strings joined, `10 mx.example.com` for MX (a null MX is
    `0 .`), names in lower case without the final dot, addresses. `server` is who answered, `through` are the
    names that CNAMEs led to; the last one holds the values (or lacks them). `detail` describes the trouble.
    """

    kind: AnswerKind
    values: tuple[str, ...] = ()
    server: str = ""
    detail: str = ""
    through: tuple[str, ...] = ()


DnsAnswers = tuple[DnsAnswer, ...]
"""The answers of several servers to one question, the more trustworthy first; never empty."""


class UncachedDns(Protocol):
    """Asks DNS as it is now, without a cache of ours."""

    async def ask(self, question: DnsQuestion) -> DnsAnswers: ...


def settled(answers: DnsAnswers) -> DnsAnswer:
    """Return the answer that counts where only one can: the first that is not trouble."""
    return next((found for found in answers if found.kind is not AnswerKind.TROUBLE), answers[0])
