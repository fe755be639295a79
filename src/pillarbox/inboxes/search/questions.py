"""The two kinds of search: by the messages of a thread, or by its subject and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from pillarbox.inboxes.folders import ThreadFolder
from pillarbox.inboxes.search import queries, terms
from pillarbox.inboxes.search.candidates import Clause
from pillarbox.inboxes.search.folding import folded
from pillarbox.inboxes.search.message_filter import MessageFilter
from pillarbox.inboxes.search.queries import MatchingMessage, MessageCondition, UnindexedMessage
from pillarbox.inboxes.search.terms import SearchField
from pillarbox.inboxes.threads.list_filter import ThreadFilter
from pillarbox.kernel.ids import EPOCH, first_id
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import NEWEST, OLDEST

CLOCKS: Final = timedelta(hours=1)
"""How far the time in the id of a message may be from its own."""

_texts = msgspec.json.Decoder(list[str]).decode

SHOWN: Final[Mapping[SearchField, Callable[[MatchingMessage], str | None]]] = {
    SearchField.TO: lambda message: message.to_list,
    SearchField.CC: lambda message: message.cc_list,
    SearchField.BCC: lambda message: message.bcc_list,
}


@dataclass(frozen=True, slots=True)
class OfMessages:
    """Threads with a message that fits."""

    messages: MessageFilter
    threads: ThreadFilter

    @property
    def clauses(self) -> list[Clause]:
        wanted = self.messages
        # Long ones first: they are rare, and the last ones may be left out.
        items = sorted(wanted.words.wanted, key=len, reverse=True)
        found = [Clause((tuple(terms.of_words(one)),)) for one in map(_whole_words, items) if one]
        for part, values in wanted.people.items():
            found.append(Clause(tuple(tuple(terms.of_octets(part, value)) for value in values)))
        if wanted.has_attachment:
            found.append(Clause(((terms.of_attachment(),),)))
        return found

    @property
    def ids(self) -> tuple[UUID, UUID]:
        since, until = self.messages.since, self.messages.until
        return (
            OLDEST if since is None else first_id(max(EPOCH, _shifted(since, -CLOCKS))),
            NEWEST if until is None else first_id(_shifted(until, CLOCKS)),
        )

    async def undescribed(self, db: TeamDb, inbox_id: UUID, after: UUID) -> Sequence[UnindexedMessage]:
        words = self.messages.words
        return await queries.undescribed(db, inbox_id, after, words.wanted, words.excluded)

    async def matching(
        self, db: TeamDb, inbox_id: UUID, threads: Sequence[UUID], messages: Sequence[UUID] | None
    ) -> Mapping[UUID, UUID | None]:
        if messages is None:
            found = await queries.matching_of_threads(db, inbox_id, threads, self._wanted)
        else:
            found = await queries.matching(db, inbox_id, messages, self._wanted)
        best: dict[UUID, MatchingMessage] = {}
        for message in found:
            known = best.get(message.thread_id)
            if (known is None or _rank(known) < _rank(message)) and self._has_people(message):
                best[message.thread_id] = message
        return {thread_id: message.id for thread_id, message in best.items()}

    @property
    def _wanted(self) -> MessageCondition:
        messages, threads = self.messages, self.threads
        folders = threads.folders - {ThreadFolder.SENT} if threads.with_sent else threads.folders
        return MessageCondition(
            words=messages.words.wanted,
            excluded=messages.words.excluded,
            has_attachment=messages.has_attachment,
            since=messages.since,
            until=messages.until,
            folders=[folder.value for folder in folders],
            with_sent=threads.with_sent,
        )

    def _has_people(self, message: MatchingMessage) -> bool:
        for part, values in self.messages.people.items():
            shown = folded(message.sender) if part is SearchField.SENDER else _joined(SHOWN[part](message))
            if not any(value in shown for value in values):
                return False
        return True


@dataclass(frozen=True, slots=True)
class OfThreads:
    """Threads with a text in the subject, or with one of these labels, whose names have it. `text` is
    folded."""

    text: str
    labels: frozenset[UUID]

    @property
    def clauses(self) -> list[Clause]:
        # Each thread has the subject of its first message, which a block describes.
        return [Clause((tuple(terms.of_octets(SearchField.SUBJECT, self.text)),))]

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return OLDEST, NEWEST

    async def undescribed(self, db: TeamDb, inbox_id: UUID, after: UUID) -> Sequence[UnindexedMessage]:
        return await queries.undescribed(db, inbox_id, after, (), ())

    async def matching(
        self, db: TeamDb, inbox_id: UUID, threads: Sequence[UUID], messages: Sequence[UUID] | None
    ) -> Mapping[UUID, UUID | None]:
        return {
            thread.id: None
            for thread in await queries.names(db, inbox_id, threads)
            if self.text in folded(thread.subject or "") or not self.labels.isdisjoint(thread.labels)
        }


def _whole_words(item: str) -> list[str]:
    """Return the item's words, without a last one that is only the beginning of a word: blocks do not know
    those."""
    found = item.split()
    return found if item.endswith(" ") else found[:-1]


def _joined(texts: str | None) -> str:
    return "" if texts is None else "\0".join(map(folded, _texts(texts)))


def _rank(message: MatchingMessage) -> tuple[int, datetime, UUID]:
    """Return the rank of a message: of several, the one with the greatest is shown. It is the more relevant
    one, else the newer."""
    return message.weight, message.received_at, message.id


def _shifted(instant: datetime, by: timedelta) -> datetime:
    """Return the instant moved by that much; unmoved where the result would be out of range."""
    try:
        return instant + by
    except OverflowError:
        return instant
