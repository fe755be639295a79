"""Pages of what was searched for (inboxes.md 5.1 and 5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pillarbox.inboxes.search import queries
from pillarbox.inboxes.search.find import MOST_COMPARED, SearchQuery, ThreadHit, find, snapshot
from pillarbox.inboxes.search.folding import folded
from pillarbox.inboxes.search.message_filter import MessageFilter
from pillarbox.inboxes.search.questions import OfMessages, OfThreads
from pillarbox.inboxes.threads import lists
from pillarbox.inboxes.threads.list_filter import ThreadFilter
from pillarbox.inboxes.threads.lists import Position, ThreadPage
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import DEFAULT, Page

AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class ThreadSearchPage:
    """A page of threads, and of each of them the message that was found."""

    page: ThreadPage
    messages: Mapping[UUID, UUID | None]


async def by_messages(
    db: TeamDb, inbox_id: UUID, page: Page, threads: ThreadFilter, messages: MessageFilter
) -> ThreadSearchPage:
    """Return a page of the threads with a message that fits."""
    if not messages:
        return ThreadSearchPage(await lists.thread_page(db, inbox_id, page, threads), {})
    async with snapshot(db) as inner:
        await lists.refuse_unknown_labels(inner, inbox_id, threads.labels)
        start = await lists.position(inner, inbox_id, page, threads)
        if messages.words.is_hopeless:
            return ThreadSearchPage(ThreadPage((), has_more=False), {})
        return await _page(inner, inbox_id, page, start, OfMessages(messages, threads), threads)


async def by_text(db: TeamDb, inbox_id: UUID, page: Page, threads: ThreadFilter, text: str) -> ThreadPage:
    """Return a page of the threads with this text in the subject or in the name of a label."""
    text = folded(text)
    async with snapshot(db) as inner:
        await lists.refuse_unknown_labels(inner, inbox_id, threads.labels)
        start = await lists.position(inner, inbox_id, page, threads)
        labels = [
            label.id for label in await queries.label_names(inner, inbox_id) if text in folded(label.name)
        ]
        question = OfThreads(text, frozenset(labels))
        found = await _page(inner, inbox_id, page, start, question, threads, labels)
        return found.page


async def _page(
    db: TeamDb,
    inbox_id: UUID,
    page: Page,
    start: Position,
    question: SearchQuery,
    threads: ThreadFilter,
    labels: list[UUID] | None = None,
) -> ThreadSearchPage:
    limit = page.limit or DEFAULT
    hits = {hit.thread_id: hit for hit in await find(db, inbox_id, question, threads, start, limit + 1)}
    ids = list(hits)
    if labels:
        labelled = await _labelled(db, inbox_id, threads, labels, start, limit + 1)
        sized = await queries.sizes(db, inbox_id, list({*ids, *labelled}))
        sized.sort(key=lambda thread: (thread.received_at, thread.id), reverse=not start.is_newer)
        ids = [thread.id for thread in sized[: limit + 1]]
    shown = await lists.shown(db, inbox_id, ids, limit, start)
    none = ThreadHit(UUID(int=0), None)
    return ThreadSearchPage(shown, {thread_id: hits.get(thread_id, none).message_id for thread_id in ids})


async def _labelled(
    db: TeamDb, inbox_id: UUID, threads: ThreadFilter, labels: list[UUID], start: Position, limit: int
) -> list[UUID]:
    """Return the first threads with one of these labels, and with one of those that the filter names."""
    if not threads.labels:
        return list(await lists.labelled(db, threads, labels, start, limit))
    found: list[UUID] = []
    for _ in range(0, MOST_COMPARED, AT_ONCE):
        some = await lists.labelled(db, threads, labels, start, AT_ONCE)
        named = {thread.id: thread.labels for thread in await queries.names(db, inbox_id, some)}
        found += [one for one in some if not set(threads.labels).isdisjoint(named.get(one, ()))]
        if len(found) >= limit or len(some) < AT_ONCE:
            break
        last = (await queries.sizes(db, inbox_id, some[-1:]))[0]
        start = Position(last.received_at, last.id, start.is_newer)
    return found[:limit]
