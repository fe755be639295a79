"""The level and the reasons of a message, by its signs and by what the team knows of its sender. Pure.

- suspicious: something deceives, or two things may, or the domain of the sender wants such mail refused;
- trusted: it is authenticated, and an inbox of the team has written to this address;
- known: it is authenticated, and of a contact, or answers what this inbox has sent;
- unknown: anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from pillarbox.inboxes.trust.confusables import SenderDomains, name_skeleton
from pillarbox.inboxes.trust.message_facts import FREE_MAIL, MessageSigns
from pillarbox.inboxes.trust.reasons import STRONG, WEAK, Level, TrustReason


class SenderFacts(NamedTuple):
    """All that the team knows of the sender of a message. `name_of` is a message of a known sender with
    a name that looks the same and another address."""

    is_contact: bool = False
    has_written: bool = False
    answers_ours: bool = False
    has_come: bool = False
    name_of: UUID | None = None


@dataclass(frozen=True)
class TeamKnowledge:
    """The team's own domains, as far as registrable; its names by how they look; and the domains of its known
    senders, its own among them."""

    own: frozenset[str]
    names: frozenset[str]
    known: SenderDomains


class TrustJudgement(NamedTuple):
    """The level of a message and its reasons, in the order of how much they say."""

    level: Level
    reasons: Sequence[TrustReason]


def judged(signs: MessageSigns, facts: SenderFacts, team: TeamKnowledge) -> TrustJudgement:
    """Return the level of a message and its reasons."""
    reasons = [*_who(facts), *_impersonation(signs, facts, team), *signs.reasons]
    return TrustJudgement(_level(signs, facts, {reason.code for reason in reasons}), reasons)


def _who(facts: SenderFacts) -> list[TrustReason]:
    codes = {
        "written_to": facts.has_written,
        "contact": facts.is_contact,
        "answers_ours": facts.answers_ours,
        "first_contact": not facts.has_come,
    }
    return [TrustReason(code) for code, holds in codes.items() if holds]


def _impersonation(signs: MessageSigns, facts: SenderFacts, team: TeamKnowledge) -> list[TrustReason]:
    """Return as whom the sender may want to pass."""
    found = []
    is_own = signs.domain in team.own
    if is_own and not signs.is_authenticated:
        found.append(TrustReason("own_domain_forged", {"domain": signs.domain}))
    is_known = signs.is_authenticated and facts.has_written
    if facts.name_of is not None and not is_known:
        found.append(TrustReason("name_of_known", {"name": signs.name, "email_id": str(facts.name_of)}))
    if not is_own and not is_known and name_skeleton(signs.name) in team.names:
        found.append(TrustReason("name_of_team", {"name": signs.name}))
    if not is_own and signs.domain not in FREE_MAIL and signs.domain:
        like = team.known.like(signs.domain)
        if like is not None:
            found.append(TrustReason("look_alike_domain", {"domain": signs.domain, "looks_like": like}))
        label = team.known.used_as_label(signs.host, signs.domain)
        if label is not None:
            found.append(TrustReason("known_domain_as_label", {"domain": signs.domain, "contains": label}))
    return found


def _level(signs: MessageSigns, facts: SenderFacts, codes: set[str]) -> Level:
    if signs.is_forged or codes & STRONG:
        return "suspicious"
    is_known = facts.has_written or facts.is_contact or facts.answers_ours
    if len(codes & WEAK) > 1 and not (is_known and signs.is_authenticated):
        return "suspicious"
    if signs.is_authenticated and facts.has_written:
        return "trusted"
    return "known" if signs.is_authenticated and is_known else "unknown"
