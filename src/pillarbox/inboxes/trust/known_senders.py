"""Knowledge of teams about those who write to them, asked for all messages of a commit together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from msgspec.structs import replace

from pillarbox.domains.names import registrable
from pillarbox.inboxes.threading.new_messages import NewMessage
from pillarbox.inboxes.trust import evaluation, queries
from pillarbox.inboxes.trust.confusables import SenderDomains, name_skeleton
from pillarbox.inboxes.trust.evaluation import SenderFacts, TeamKnowledge, TrustJudgement
from pillarbox.inboxes.trust.message_facts import FREE_MAIL, MessageSigns
from pillarbox.inboxes.trust.queries import StoredKnowledge
from pillarbox.inboxes.trust.reasons import TrustReason
from pillarbox.kernel.postgres.combined_statement import Statement
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.mail.message.threading import id_key

FRESH_FOR: Final = timedelta(seconds=60)
"""So long the names and domains that a team is compared by are held."""
MOST_HELD: Final = 20_000
"""Names and domains of all teams together; a domain takes some 2 kB."""
LEAST_HELD: Final = 10
"""So many a team counts at least."""
MOST_EARLIER: Final = 10
"""Ids of earlier messages by which an answer is told."""
OCTETS_EACH: Final = 512
"""The cost of a name or a domain, as octets of other work that is done in a thread where it is much."""


class _HeldKnowledge(NamedTuple):
    """The knowledge of a team, when it was read, and how many names and domains it has."""

    read_at: datetime
    knowledge: TeamKnowledge
    size: int


class KnownSenders:
    """Judges the messages of commits. Names and domains of teams are read anew each minute."""

    def __init__(self) -> None:
        self._teams: OrderedDict[UUID, _HeldKnowledge] = OrderedDict()
        self._held = 0

    async def read(self, conn: Connection, now: datetime, team_ids: set[UUID]) -> None:
        """Read what these teams are compared by, before a lock is held, where it is not at hand."""
        await self._knowledge(conn, now, team_ids)

    async def storing(
        self, conn: Connection, now: datetime, messages: Sequence[NewMessage]
    ) -> list[Statement]:
        """Return the statement that stores the trust of these messages; none where none of them came in."""
        signed = [
            (message, _signs(message, message.signs)) for message in messages if message.signs is not None
        ]
        if not signed:
            return []
        teams = await self._knowledge(conn, now, {message.team_id for message, _ in signed})
        found = await queries.facts(conn, [_asked(place, *one) for place, one in enumerate(signed)])
        rows = []
        for (message, signs), row in zip(signed, found, strict=True):
            facts = SenderFacts(
                is_contact=row["is_contact"],
                has_written=row["has_written"],
                answers_ours=row["answers_ours"],
                has_come=row["has_come"],
                name_of=row["name_of"],
            )
            rows.append(_row(message, signs, evaluation.judged(signs, facts, teams[message.team_id])))
        return [queries.adding(rows)]

    async def _knowledge(
        self, conn: Connection, now: datetime, team_ids: set[UUID]
    ) -> dict[UUID, TeamKnowledge]:
        found = {
            team_id: held.knowledge
            for team_id in team_ids
            if (held := self._teams.get(team_id)) is not None and now - held.read_at < FRESH_FOR
        }
        missing = team_ids - found.keys()
        if missing:
            for team_id, stored in (await queries.knowledge(conn, missing)).items():
                size = len(stored.own) + len(stored.names) + len(stored.known)
                found[team_id] = await in_thread_if_large(size * OCTETS_EACH, _compared, stored)
                self._hold(team_id, _HeldKnowledge(now, found[team_id], max(size, LEAST_HELD)))
        return found

    def _hold(self, team_id: UUID, read: _HeldKnowledge) -> None:
        """Keep it, and forget what was read longest ago where it is too much."""
        before = self._teams.pop(team_id, None)
        self._teams[team_id] = read
        self._held += read.size - (0 if before is None else before.size)
        while self._held > MOST_HELD and len(self._teams) > 1:
            self._held -= self._teams.popitem(last=False)[1].size


def _signs(message: NewMessage, signs: MessageSigns) -> MessageSigns:
    """Return the signs of a message in its inbox, whose policy may call it spam."""
    if not message.is_spam or any(reason.code == "spam" for reason in signs.reasons):
        return signs
    return replace(signs, reasons=(*signs.reasons, TrustReason("spam", {"reason": "blocked_sender"})))


def _compared(stored: StoredKnowledge) -> TeamKnowledge:
    own = frozenset(map(registrable, stored.own))
    return TeamKnowledge(
        own=own,
        names=frozenset(filter(None, map(name_skeleton, stored.names))),
        known=SenderDomains({*own, *stored.known} - FREE_MAIL),
    )


def _asked(place: int, message: NewMessage, signs: MessageSigns) -> dict[str, Any]:
    return {
        "place": place,
        "team_id": message.team_id,
        "inbox_id": message.inbox_id,
        "address": signs.address.replace("\0", ""),
        "sender_key": signs.sender_key,
        "name_key": signs.name_key,
        "earlier_keys": [id_key(one) for one in message.earlier_ids[:MOST_EARLIER]],
    }


def _row(message: NewMessage, signs: MessageSigns, judged: TrustJudgement) -> dict[str, Any]:
    return {
        "team_id": message.team_id,
        "email_id": message.id,
        "inbox_id": message.inbox_id,
        "level": judged.level,
        "reasons": [{"code": reason.code, "detail": reason.detail} for reason in judged.reasons],
        "sender_key": signs.sender_key,
        "name_key": signs.name_key,
        "domain": signs.domain,
    }
