"""Somebody holds the lock of an inbox: its mail waits for a bounded time, and no other mail does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest

from kit.inbox_mail import InboxMail, inbox_mail, letter
from pillarbox.inboxes import locking
from pillarbox.kernel.postgres.database import Connection
from pillarbox.receiving.arrivals.inbox_commits import ForInbox
from pillarbox.receiving.arrivals.inbox_queues import InboxQueues

HELP, SALES = "help@harbor.example", "sales@harbor.example"

WAITS = """
    SELECT EXISTS (SELECT FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock')
"""

# The ids of the messages that were committed together.
TOGETHER = """
    SELECT array_agg(message_id ORDER BY message_id) AS ids FROM inbox_messages GROUP BY xmin::text
"""

LATER = (([HELP], 2), ([HELP, SALES], 3), ([HELP], 1), ([HELP], 0), ([SALES], 4))
"""To whom the messages go that come later, and their numbers; one is a repetition."""


@asynccontextmanager
async def locked(mail: InboxMail, inbox: str) -> AsyncIterator[Connection]:
    """The inbox is locked by another transaction."""
    async with mail.team.world.pool.acquire() as other, other.transaction():
        await other.execute("SELECT FROM inboxes WHERE id = $1 FOR NO KEY UPDATE", UUID(inbox))
        yield other


async def offered(
    mail: InboxMail, *to: str, number: int = 0, answers: str | None = None
) -> asyncio.Task[str]:
    """A message for these, sent; the answer is still to come."""
    session = await mail.client.connect()
    await session.offer(list(to))
    return asyncio.create_task(session.text(letter(to=to[0], message_id=f"<{number}@x>", answers=answers)))


async def waits(mail: InboxMail) -> None:
    """Return when a session of the database waits for a lock."""
    async with asyncio.timeout(20):
        while not await mail.team.world.pool.fetchval(WAITS):
            await asyncio.sleep(0.01)


@pytest.fixture
def mail(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[InboxMail]:
    return inbox_mail(database_url, tmp_path)


async def test_only_mail_of_a_locked_inbox_waits(mail: InboxMail) -> None:
    help_inbox, sales = await mail.inbox(HELP), await mail.inbox(SALES)
    async with locked(mail, help_inbox):
        waiting = [await offered(mail, HELP, number=0)]
        await waits(mail)
        waiting += [await offered(mail, HELP, number=number) for number in range(1, 4)]
        for number in range(3):
            assert (await mail.brings(SALES, message_id=f"<s{number}@x>")).startswith("250")
        assert (await mail.brings("nobody@harbor.example")).startswith("250")
        assert not any(answer.done() for answer in waiting)
    assert [answer[:3] for answer in await asyncio.gather(*waiting)] == ["250"] * 4
    assert (len(await mail.threads(help_inbox)), len(await mail.threads(sales))) == (4, 3)


async def test_mail_that_comes_while_a_commit_waits_shares_it(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is for the same inboxes; a repetition of what is in that commit is stored once."""
    submitted = 0
    submit = InboxQueues.submit

    async def counted(queues: InboxQueues, mails: Sequence[ForInbox]) -> tuple[UUID, ...]:
        nonlocal submitted
        submitted += 1
        return await submit(queues, mails)

    async with inbox_mail(database_url, tmp_path) as mail:
        help_inbox, sales = await mail.inbox(HELP), await mail.inbox(SALES)
        # The way of inboxes is known for both addresses.
        await mail.brings(HELP, SALES, message_id="<first@x>")
        monkeypatch.setattr(locking, "BRIEF_MS", 3000)
        monkeypatch.setattr(InboxQueues, "submit", counted)
        async with locked(mail, help_inbox):
            waiting = [await offered(mail, HELP, number=1, answers="<unknown1@x>")]
            await waits(mail)
            for to, number in LATER:
                waiting.append(await offered(mail, *to, number=number, answers=f"<unknown{number}@x>"))
            async with asyncio.timeout(20):
                while submitted < 1 + len(LATER):
                    await asyncio.sleep(0.005)
        assert {answer[:3] for answer in await asyncio.gather(*waiting)} == {"250"}
        assert (len(await mail.threads(help_inbox)), len(await mail.threads(sales))) == (5, 3)
        found = await mail.team.world.pool.fetch(TOGETHER)
        assert sorted(row["ids"] for row in found) == [
            ["<0@x>", "<1@x>", "<2@x>"],
            ["<3@x>", "<3@x>", "<4@x>"],
            ["<first@x>", "<first@x>"],
        ]


async def test_mail_that_came_together_is_parted_by_the_lock(mail: InboxMail) -> None:
    """The mails for both inboxes may share a commit; only those of the locked one are left out of it."""
    help_inbox, sales = await mail.inbox(HELP), await mail.inbox(SALES)
    sessions = [await mail.client.connect() for _ in range(20)]
    inboxes = [(HELP, SALES)[number % 2] for number in range(20)]
    for session, to in zip(sessions, inboxes, strict=True):
        await session.offer([to])
    async with locked(mail, help_inbox):
        answers = [
            asyncio.create_task(session.text(letter(to=to, message_id=f"<{number}@x>")))
            for number, (session, to) in enumerate(zip(sessions, inboxes, strict=True))
        ]
        for answer in answers[1::2]:
            assert (await answer).startswith("250")
        assert not any(answer.done() for answer in answers[::2])
    for answer in answers[::2]:
        assert (await answer).startswith("250")
    assert (len(await mail.threads(help_inbox)), len(await mail.threads(sales))) == (10, 10)


async def test_mail_for_two_inboxes_holds_no_lock_while_it_waits(mail: InboxMail) -> None:
    """It belongs into both: it waits for the one that is locked, and mail for the other does not."""
    inboxes = {HELP: await mail.inbox(HELP), SALES: await mail.inbox(SALES)}
    for turn, (busy, free) in enumerate(((HELP, SALES), (SALES, HELP))):
        async with locked(mail, inboxes[busy]):
            waiting = await offered(mail, HELP, SALES, number=turn)
            await waits(mail)
            assert (await mail.brings(free, message_id=f"<free{turn}@x>")).startswith("250")
            assert not waiting.done()
        assert (await waiting).startswith("250")
    for inbox in inboxes.values():
        assert len(await mail.threads(inbox)) == 3
    assert len(await mail.received()) == 4


async def test_a_lock_that_stays_is_a_temporary_failure(mail: InboxMail) -> None:
    """For all that wait for it together, not for one after the other; later the same mail is taken."""
    inbox = await mail.inbox(HELP)
    async with locked(mail, inbox):
        waiting = [await offered(mail, HELP, number=number) for number in range(12)]
        answers = await asyncio.gather(*waiting)
        assert {answer[:4] for answer in answers} == {"451 "}
    assert await mail.received() == []
    for number in range(12):
        assert (await (await offered(mail, HELP, number=number))).startswith("250 2.0.0 Ok")
    assert len(await mail.threads(inbox)) == 12


async def test_an_inbox_that_is_deleted_meanwhile(mail: InboxMail) -> None:
    """What waited for it is stored like mail for any other address of the team."""
    inbox = await mail.inbox(HELP)
    async with locked(mail, inbox) as other:
        waiting = await offered(mail, HELP)
        await waits(mail)
        await other.execute("DELETE FROM directory_inboxes WHERE inbox_id = $1", UUID(inbox))
        await other.execute("DELETE FROM inboxes WHERE id = $1", UUID(inbox))
    assert (await waiting).startswith("250")
    assert len(await mail.received()) == 1
    assert await mail.team.world.pool.fetchval("SELECT count(*) FROM inbox_messages") == 0
