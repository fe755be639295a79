"""Says what is wrong with a record and what to do next, in plain words. Pure: `follow_ups` has the further
questions to DNS, `advised` makes advice of all answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from msgspec import Struct

from pillarbox.domains.dns.advice_table import ADVICE
from pillarbox.domains.dns.advice_values import Diagnosis, WrongValues, diagnosed, quoted, warned
from pillarbox.domains.dns.matching import ExpectedRecord, Match, RecordKind, RecordVerdict, fits
from pillarbox.domains.names import LONGEST, registrable
from pillarbox.kernel.network.dns_answers import AnswerKind, DnsAnswer, DnsQuestion

OWNED_ELSEWHERE: Final = "owned_elsewhere"
NO_SUCH_LABEL: Final = "pillarbox-no-such-name"
"""Nobody publishes anything under it: what answers all the same is a wildcard."""


class Advice(Struct, frozen=True):
    """`code` is for programs and never changes its meaning; `problem` and `step` are sentences."""

    code: str
    problem: str
    step: str


class QuestionRole(Enum):
    """The purpose of a further question."""

    DOUBLED = "the record may stand under a doubled name"
    ELSEWHERE = "the record may stand under a similar name"
    OTHER_TYPE = "the value may stand in a record of another type"
    APEX = "the domain may not exist at all"
    WILDCARD = "what was found may be there for every name"


class FollowUp(NamedTuple):
    """A further question, and what it is asked for."""

    role: QuestionRole
    question: DnsQuestion


@dataclass(frozen=True, slots=True)
class AdviceCase:
    """A record, the verdict on it, and what it was judged in."""

    expected: ExpectedRecord
    verdict: RecordVerdict
    domain: str
    old_keys: Sequence[str] = ()
    """Public keys that this domain had at the same selector or another."""


def follow_ups(case: AdviceCase) -> list[FollowUp]:
    """Return the further questions about a record that is not right; none where it is, or where DNS is in
    trouble."""
    expected, verdict = case.expected, case.verdict
    if verdict.match is Match.DIFFERENT:
        question = DnsQuestion(f"{NO_SUCH_LABEL}.{expected.owner.partition('.')[2]}", expected.type)
        return [] if expected.kind is RecordKind.RECEIVING else [FollowUp(QuestionRole.WILDCARD, question)]
    if verdict.match is not Match.ABSENT or verdict.answer.through:
        return []
    found = [FollowUp(QuestionRole.DOUBLED, DnsQuestion(name, expected.type)) for name in _doubled(case)]
    found += [FollowUp(QuestionRole.ELSEWHERE, DnsQuestion(name, expected.type)) for name in _similar(case)]
    if expected.type != "TXT":
        found.append(FollowUp(QuestionRole.OTHER_TYPE, DnsQuestion(expected.owner, "TXT")))
    return [*found, FollowUp(QuestionRole.APEX, DnsQuestion(case.domain, "TXT"))]


def advised(case: AdviceCase, answers: Sequence[tuple[FollowUp, DnsAnswer]] = ()) -> tuple[Advice, ...]:
    """Return the advice for a record, the most important first; none where everything is right."""
    expected, (match, answer) = case.expected, case.verdict
    if match is Match.MATCH:
        is_match = fits(expected, answer.values)
        return _advice_texts(case, *(warned(expected, answer.values) if is_match else ()))
    if match is Match.UNKNOWN:
        return _advice_texts(case, Diagnosis("trouble", {"found": answer.detail or "no reason is known"}))
    if answer.through and expected.kind is not RecordKind.TRACKING:
        code = "cname_dangling" if answer.kind is AnswerKind.NO_NAME else "cname_beside"
        return _advice_texts(case, Diagnosis(code, {"place": answer.through[0]}))
    if match is Match.ABSENT:
        return _advice_texts(case, _absent(case, answers))
    wrong = diagnosed(WrongValues(expected, answer.values, case.domain, case.old_keys))
    wild = [Diagnosis("wildcard") for _, found in answers if set(found.values) == set(answer.values)]
    return _advice_texts(case, *wild[:1], wrong)


def not_ours(domain: str) -> Advice:
    """Return the advice where another team owns the name."""
    words = ADVICE[OWNED_ELSEWHERE]
    return Advice(OWNED_ELSEWHERE, words.problem.format(domain=domain), words.step)


def _absent(case: AdviceCase, answers: Sequence[tuple[FollowUp, DnsAnswer]]) -> Diagnosis:
    """Return why nothing is there, by the first follow-up question that explains it."""
    if len(case.expected.owner) > LONGEST:
        return Diagnosis("name_too_long")
    for follow_up, found in answers:
        if (diagnosis := _follow_up_diagnosis(case.expected, follow_up, found)) is not None:
            return diagnosis
    return Diagnosis("absent")


def _follow_up_diagnosis(
    expected: ExpectedRecord, follow_up: FollowUp, dns_answer: DnsAnswer
) -> Diagnosis | None:
    match follow_up.role:
        case QuestionRole.DOUBLED if _is_ours(expected, dns_answer):
            return Diagnosis("doubled_name", {"place": follow_up.question.name})
        case QuestionRole.ELSEWHERE if _is_ours(expected, dns_answer):
            return Diagnosis("wrong_host", {"place": follow_up.question.name})
        case QuestionRole.OTHER_TYPE if any(
            expected.value == value.strip(". ").lower() for value in dns_answer.values
        ):
            return Diagnosis("wrong_type")
        case QuestionRole.APEX if dns_answer.kind is AnswerKind.NO_NAME:
            return Diagnosis("no_domain")
    return None


def _is_ours(expected: ExpectedRecord, dns_answer: DnsAnswer) -> bool:
    """Return whether the record stands there."""
    return dns_answer.kind is AnswerKind.VALUES and fits(expected, dns_answer.values)


def _doubled(case: AdviceCase) -> list[str]:
    """Return the names that come about when a provider adds the zone to a name that has it already."""
    expected, above = case.expected, registrable(case.domain)
    names = [f"{expected.owner}.{above}", f"{expected.owner}.{case.domain}"]
    if expected.kind is not RecordKind.RECEIVING:
        names.append(f"{expected.shown}.{case.domain}")
    return _others(expected, names)


def _similar(case: AdviceCase) -> list[str]:
    """Return the names that people mistake for the right one."""
    expected, above = case.expected, registrable(case.domain)
    inner = expected.owner.removesuffix(case.domain).removesuffix(".")
    names = [f"{inner}.{above}" if inner else above]
    if expected.kind is RecordKind.DKIM:
        selector = inner.removesuffix("._domainkey")
        names += [
            f"{selector}.{case.domain}",
            f"_domainkey.{case.domain}",
            f"{selector}.domainkey.{case.domain}",
        ]
    elif expected.kind in (RecordKind.SPF_MX, RecordKind.SPF_TXT):
        names.append(case.domain)
    return _others(expected, names)


def _others(expected: ExpectedRecord, names: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name != expected.owner and len(name) <= LONGEST]


def _advice_texts(case: AdviceCase, *diagnoses: Diagnosis) -> tuple[Advice, ...]:
    expected = case.expected
    known = {
        "owner": expected.owner,
        "shown": expected.shown,
        "type": expected.type,
        "value": expected.value,
        "domain": case.domain,
        "found": quoted(case.verdict.answer.values),
    }
    return tuple(
        Advice(
            diagnosis.code,
            ADVICE[diagnosis.code].problem.format(**{**known, **diagnosis.words}),
            ADVICE[diagnosis.code].step.format(**{**known, **diagnosis.words}),
        )
        for diagnosis in diagnoses
    )
