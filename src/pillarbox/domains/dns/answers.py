"""What DNS said when it was asked: questions and answers as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, Protocol

Kind = Literal["MX", "TXT", "CNAME", "PTR", "ADDRESSES"]


class Question(NamedTuple):
    """`name` is ASCII without the final dot. CNAMEs are followed, but for the kind that asks for them;
    `ADDRESSES` is A and AAAA together."""

    name: str
    kind: Kind


class AnswerKind(Enum):
    """The four things that DNS can say."""

    VALUES = "values"
    NO_DATA = "no_data"
    NO_NAME = "no_name"
    TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class DnsAnswer:
    """One answer to one question.

    `values`, where there are any: TXT with its strings joined, `10 mx.example.com` for MX (a null MX is
    `0 .`), names in lower case without the final dot, addresses. `server` says who answered, `through` which
    names CNAMEs led to, the last one first to hold the values (or to lack them). `detail` says in words what
    the trouble was.
    """

    said: AnswerKind
    values: tuple[str, ...] = ()
    server: str = ""
    detail: str = ""
    through: tuple[str, ...] = ()


DnsAnswers = tuple[DnsAnswer, ...]
"""The answers of several servers to one question, the more trustworthy first; never empty."""


class UncachedDns(Protocol):
    """Asks DNS as it is now: nothing of ours is remembered."""

    async def ask(self, question: Question) -> DnsAnswers: ...


def settled(sightings: DnsAnswers) -> DnsAnswer:
    """The answer that counts where only one can: the first that says something about the name."""
    return next((found for found in sightings if found.said is not AnswerKind.TROUBLE), sightings[0])
