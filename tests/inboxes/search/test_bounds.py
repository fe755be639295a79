"""A question of a stranger ends, however many messages seem to fit; and what it shows fits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.searched_inboxes import Mail, SearchedInbox, searched_world
from pillarbox.inboxes.folders import ThreadFolder
from pillarbox.inboxes.search import queries
from pillarbox.inboxes.search.find import SearchLimits, find, snapshot
from pillarbox.inboxes.search.message_filter import MessageFilter
from pillarbox.inboxes.search.questions import OfMessages
from pillarbox.inboxes.search.words import words
from pillarbox.inboxes.threads.list_filter import ThreadFilter
from pillarbox.inboxes.threads.lists import FIRST
from pillarbox.kernel.postgres.database import TeamDb


async def asked(
    inbox: SearchedInbox, query: str, folder: ThreadFolder, limit: int, most: SearchLimits
) -> tuple[list[str], int]:
    """The messages that are found, and how many were compared."""
    threads = ThreadFilter(frozenset({folder}))
    question = OfMessages(MessageFilter(words=words(query)), threads)
    compared: list[int] = []
    plain = OfMessages.matching

    async def counting(
        self: OfMessages, db: TeamDb, inbox_id: UUID, some: Sequence[UUID], messages: Any
    ) -> Any:
        compared.append(len(some if messages is None else messages))
        return await plain(self, db, inbox_id, some, messages)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(OfMessages, "matching", counting)
        async with snapshot(inbox.inbox.team.db) as db:
            hits = await find(db, inbox.inbox.id, question, threads, FIRST, limit, most)
    return [str(hit.message_id) for hit in hits], sum(compared)


MOST = SearchLimits(hits=30, compared=40, walked=25)


@pytest.fixture
def inbox(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[SearchedInbox]:
    return searched_world(database_url, tmp_path)


async def test_a_page_of_a_frequent_word_compares_a_page(inbox: SearchedInbox) -> None:
    mails = await inbox.add(*[Mail(f"Refund {number}", "every day") for number in range(120)])
    newest = [str(mail.id) for mail in reversed(mails)]
    for _ in range(2):
        found, compared = await asked(inbox, '"every day"', ThreadFolder.INBOX, 5, SearchLimits())
        assert found == newest[:5]
        assert compared <= 128
        await inbox.describe(worth=40)


async def test_what_hardly_any_message_answers_ends(inbox: SearchedInbox) -> None:
    mails = [Mail(f"Refund {number}", "other" if number < 5 else "every") for number in range(120)]
    await inbox.add(*mails)
    await inbox.describe(worth=40)
    found, compared = await asked(inbox, "-every", ThreadFolder.INBOX, 5, MOST)
    assert found == []
    assert compared <= MOST.compared + MOST.walked + 64
    found, _ = await asked(inbox, "-every", ThreadFolder.INBOX, 5, SearchLimits())
    assert found == [str(mail.id) for mail in reversed(mails[:5])]


async def test_a_folder_of_few_is_looked_through(inbox: SearchedInbox) -> None:
    """However many messages elsewhere fit, those of a small folder are found."""
    mails = await inbox.add(*[Mail(f"Refund {number}", "every") for number in range(120)])
    await inbox.move(mails[3], "archive")
    await inbox.describe(worth=40)
    found, compared = await asked(inbox, "every", ThreadFolder.ARCHIVE, 5, MOST)
    assert (found, compared) == ([str(mails[3].id)], 1)
    assert await asked(inbox, "every", ThreadFolder.SPAM, 5, MOST) == ([], 0)


async def test_of_very_many_the_newest_are_considered(inbox: SearchedInbox) -> None:
    mails = await inbox.add(*[Mail(f"Refund {number}", "every") for number in range(120)])
    # The folder has many threads that do not fit and are newer, so it is not looked through to its end.
    await inbox.add(*[Mail(f"Other {number}") for number in range(80)])
    await inbox.describe(worth=40)
    found, compared = await asked(inbox, "every", ThreadFolder.INBOX, 50, MOST)
    assert found == [str(mail.id) for mail in reversed(mails[-30:])]
    assert compared <= MOST.compared + MOST.walked + 64


async def test_a_rare_word_among_many_messages_is_found_at_once(inbox: SearchedInbox) -> None:
    mails = await inbox.add(*[Mail(f"Refund {number}", f"number{number} every") for number in range(600)])
    await inbox.describe(worth=100, together=2)
    for number in (0, 299, 599):
        found, compared = await asked(inbox, f"every number{number}", ThreadFolder.INBOX, 20, SearchLimits())
        assert found == [str(mails[number].id)]
        assert compared < 20


async def test_threads_of_one_message_after_the_other_are_not_read_whole(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MOST_OF_THREAD", 10)
    async with searched_world(database_url, tmp_path) as inbox:
        (first,) = await inbox.add(Mail("Refund", "first every"))
        await inbox.add(*[Mail("Re: Refund", "every", thread=first.id) for _ in range(40)])
        for _ in range(2):
            # A rare word names its message, whatever came after it in the thread.
            assert (await asked(inbox, "first", ThreadFolder.INBOX, 5, SearchLimits()))[0] == [str(first.id)]
            await inbox.describe(worth=10)
