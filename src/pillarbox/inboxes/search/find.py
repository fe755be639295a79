"""The threads of a list that fit a question, in the order of the list.

Two ways lead to them. Where few messages seem to fit, their threads are put in order and compared until the
page is full. Where many do, the threads of the list are compared one after the other: a page is full soon.
Either way what is shown was compared with the messages themselves, and the work has an end: of more than
`MOST_HITS` messages that seem to fit the newest are considered, and a page compares at most `MOST_COMPARED`
of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

from pillarbox.inboxes.search import candidates, queries
from pillarbox.inboxes.search.candidates import Candidates, Clause
from pillarbox.inboxes.search.queries import SearchMatches, UnindexedMessage
from pillarbox.inboxes.threads import lists
from pillarbox.inboxes.threads.list_filter import ThreadFilter
from pillarbox.inboxes.threads.lists import Position
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import OLDEST

T = TypeVar("T")

MOST_HITS: Final = 10_000
MOST_COMPARED: Final = 5000
MOST_WALKED: Final = 2000
"""Messages that are compared in the order of the list."""

THREADS_AT_ONCE: Final = (64, 512)
"""The first time, and at most; each time twice as many."""

MESSAGES_AT_ONCE: Final = 2000

COST_OF_CANDIDATE, COST_OF_THREAD = 20, 20
"""Microseconds, about: to find the place of a message's thread, and to compare a thread."""


class ThreadHit(NamedTuple):
    """A thread that fits, and the message of it that fits best."""

    thread_id: UUID
    message_id: UUID | None


class SearchQuery(Protocol):
    """A search, as threads and blocks are compared with it."""

    @property
    def clauses(self) -> Sequence[Clause]:
        """The clauses on the terms of a message; one that fits meets all of them."""
        ...

    @property
    def ids(self) -> tuple[UUID, UUID]:
        """The range of the messages' ids; its upper end is not included."""
        ...

    async def undescribed(self, db: TeamDb, inbox_id: UUID, after: UUID) -> Sequence[UnindexedMessage]:
        """Return the messages without a block that may fit."""
        ...

    async def matching(
        self, db: TeamDb, inbox_id: UUID, threads: Sequence[UUID], messages: Sequence[UUID] | None
    ) -> Mapping[UUID, UUID | None]:
        """Return those of the threads that fit, each with its best message; of `messages`, or of any."""
        ...


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How far a search goes."""

    hits: int = MOST_HITS
    compared: int = MOST_COMPARED
    walked: int = MOST_WALKED


@asynccontextmanager
async def snapshot(db: TeamDb) -> AsyncIterator[TeamDb]:
    """Yield the database as it is now: blocks are put together while others read."""
    async with db.transaction() as inner:
        await queries.begin_snapshot(inner)
        yield inner


async def find(
    db: TeamDb,
    inbox_id: UUID,
    question: SearchQuery,
    thread_filter: ThreadFilter,
    start: Position,
    limit: int,
    max_count: SearchLimits = SearchLimits(),
) -> list[ThreadHit]:
    """Return the first threads behind `start` that fit, in the order in which they are read. `db` is a
    snapshot."""
    search = _Search(
        db=db,
        inbox_id=inbox_id,
        question=question,
        wanted=thread_filter,
        start=start,
        limit=limit,
        most=max_count,
    )
    return await search.hits()


@dataclass
class _Search:
    db: TeamDb
    inbox_id: UUID
    question: SearchQuery
    wanted: ThreadFilter
    start: Position
    limit: int
    most: SearchLimits
    left: int = 0

    async def hits(self) -> list[ThreadHit]:
        self.left = self.most.compared
        described_to = await queries.indexed_up_to(self.db, self.inbox_id) or OLDEST
        found = await candidates.read(self.db, self.inbox_id, self.question.clauses, *self.question.ids)
        undescribed = await self.question.undescribed(self.db, self.inbox_id, described_to)
        count = found.count + len(undescribed)
        if count > self.most.hits or self._is_walk_cheaper(found, len(undescribed)):
            walked = await self._walk(found.messages + len(undescribed), count)
            if walked is not None:
                return walked
        return await self._of_candidates(found, undescribed)

    def _is_walk_cheaper(self, candidates: Candidates, undescribed: int) -> bool:
        count = candidates.count + undescribed
        return count > 0 and self._threads_expected(
            candidates.messages + undescribed, count
        ) * COST_OF_THREAD < (count * COST_OF_CANDIDATE)

    def _threads_expected(self, messages: int, count: int) -> int:
        """Return after how many threads the page is full, if those that fit are spread evenly."""
        return self.limit * messages // max(1, count) + 1

    async def _walk(self, messages: int, count: int) -> list[ThreadHit] | None:
        """Compare the threads of the list; None where the page was not full soon enough."""
        left = min(self.most.walked, 100 + 3 * self._threads_expected(messages, count))
        position, at_once, hits = self.start, min(left, THREADS_AT_ONCE[0]), list[ThreadHit]()
        while left > 0:
            ids = await lists.ids(self.db, self.inbox_id, self.wanted, position, at_once)
            threads = await queries.sizes(self.db, self.inbox_id, ids)
            is_end = len(ids) < at_once or not threads
            while threads:
                some = _few(threads, [thread.messages for thread in threads])
                matched = await self.question.matching(
                    self.db, self.inbox_id, [thread.id for thread in some], None
                )
                hits += [ThreadHit(thread.id, matched[thread.id]) for thread in some if thread.id in matched]
                left -= sum([min(thread.messages, queries.MOST_OF_THREAD) for thread in some])
                position = Position(some[-1].received_at, some[-1].id, self.start.is_newer)
                if len(hits) >= self.limit:
                    return hits[: self.limit]
                if left <= 0:
                    return None
                threads = threads[len(some) :]
            if is_end:
                return hits
            at_once = min(2 * at_once, THREADS_AT_ONCE[1])
        return None

    async def _of_candidates(
        self, candidates: Candidates, undescribed: Sequence[UnindexedMessage]
    ) -> list[ThreadHit]:
        """Put the threads of the messages that seem to fit in order, and compare those."""
        newest = sorted(undescribed, reverse=True)[: self.most.hits]
        named = SearchMatches(candidates.newest(self.most.hits - len(newest)), newest)
        position, at_once, hits = self.start, 2 * self.limit, list[ThreadHit]()
        while self.left > 0:
            threads = await queries.threads(
                self.db,
                self.inbox_id,
                named,
                self.wanted.classes,
                position.at,
                position.id,
                self.wanted.labels or None,
                at_once,
                is_newer=self.start.is_newer,
            )
            is_end = len(threads) < at_once
            while threads and self.left > 0:
                some = _few(threads, [len(thread.messages) for thread in threads])
                messages = [one for thread in some for one in thread.messages]
                matched = await self.question.matching(
                    self.db, self.inbox_id, [thread.id for thread in some], messages
                )
                hits += [ThreadHit(thread.id, matched[thread.id]) for thread in some if thread.id in matched]
                self.left -= len(messages)
                position = Position(some[-1].received_at, some[-1].id, self.start.is_newer)
                if len(hits) >= self.limit:
                    return hits[: self.limit]
                threads = threads[len(some) :]
            if is_end:
                break
            at_once = self.most.hits
        return hits


def _few(threads: Sequence[T], messages: Sequence[int]) -> Sequence[T]:
    """Return the first of the threads, with so few messages that they are compared at once; at least one."""
    count = 0
    for place, of_thread in enumerate(messages):
        count += of_thread
        if count > MESSAGES_AT_ONCE and place:
            return threads[:place]
    return threads
