"""Mail that begins a thread is not looked up first, unless what that assumes is not so
(docs/decisions/0096)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest

from inboxes.arrivals.test_locked_inboxes import locked, offered, waits
from kit.inbound_client import inbound_client
from kit.inbox_mail import InboxMail, inbox_mail, letter
from kit.webhooks import hook
from kit.world import world

HELP, SALES = "help@harbor.example", "sales@harbor.example"


@pytest.fixture
@asynccontextmanager
async def known_inbox(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[InboxMail, str]]:
    """An inbox that has got a mail, so its address is known."""
    async with inbox_mail(database_url, tmp_path) as mail:
        inbox = await mail.inbox(HELP)
        assert (await mail.brings(HELP, message_id="<first@x>")).startswith("250")
        yield mail, inbox


async def unread(mail: InboxMail, inbox: str) -> int:
    """How many threads the inbox shows as unread."""
    return int((await mail.team.get(f"/inboxes/{inbox}")).json()["unread"])


async def test_mail_that_begins_a_thread(known_inbox: tuple[InboxMail, str]) -> None:
    mail, inbox = known_inbox
    for number in range(3):
        answer = await mail.brings(HELP, message_id=f"<{number}@x>", subject=f"Berth {number}")
        assert answer.startswith("250 2.0.0 Ok")
    assert await mail.brings(HELP, message_id=None)
    threads = await mail.threads(inbox)
    subjects = [thread["subject"] for thread in threads]
    assert subjects == ["Refund", "Berth 2", "Berth 1", "Berth 0", "Refund"]
    assert {thread["read"] for thread in threads} == {False}
    assert await unread(mail, inbox) == 5
    assert len(await mail.received()) == 5


async def test_spam_begins_a_thread_of_its_own(known_inbox: tuple[InboxMail, str]) -> None:
    mail, inbox = known_inbox
    answer = await mail.brings(HELP, message_id="<second@x>", sender="ada@bank.example")
    assert answer.startswith("250")
    [thread] = await mail.threads(inbox, "?folders=spam")
    assert not thread["read"]
    assert await unread(mail, inbox) == 1


async def test_the_same_mail_again(known_inbox: tuple[InboxMail, str]) -> None:
    """Contract decision 27; without a Message-ID as well."""
    mail, inbox = known_inbox
    for _ in range(3):
        assert (await mail.brings(HELP, message_id=None, subject="Once")).startswith("250")
    assert len(await mail.threads(inbox)) == 2
    assert len(await mail.received()) == 2


async def test_one_id_for_two_inboxes(known_inbox: tuple[InboxMail, str]) -> None:
    mail, inbox = known_inbox
    sales = await mail.inbox(SALES)
    assert (await mail.brings(SALES, message_id="<second@x>")).startswith("250")
    assert (await mail.brings(HELP, SALES, message_id="<third@x>")).startswith("250")
    assert (len(await mail.threads(inbox)), len(await mail.threads(sales))) == (2, 2)
    assert len(await mail.received()) == 3


async def test_the_same_message_at_two_servers(database_url: str, tmp_path: Path) -> None:
    """To other addresses of the inbox, so the envelopes differ: the inbox has it once (inboxes.md 9.3),
    though neither commit sees the other's."""
    async with (
        inbox_mail(database_url, tmp_path) as mail,
        world(database_url, tmp_path, started=False) as other,
        inbound_client(other) as beside,
    ):
        inbox = await mail.inbox(HELP)
        for client in (mail.client, beside):
            assert (await client.deliver(letter(to=HELP, message_id="<first@x>"), [HELP])).startswith("250")
        sessions = {
            await client.connect(): to
            for client in (mail.client, beside)
            for to in (
                f"help+{id(client)}@harbor.example",
                HELP if client is beside else "HELP@harbor.example",
            )
        }
        for number in range(20):
            raw = letter(to=HELP, message_id=f"<{number}@x>", subject=f"Berth {number}")
            for session, to in sessions.items():
                await session.offer([to])
            answers = await asyncio.gather(*[session.text(raw) for session in sessions])
            assert {answer[:3] for answer in answers} == {"250"}
        threads = await mail.threads(inbox, "?limit=100")
        assert sorted(thread["subject"] for thread in threads) == sorted(
            ["Refund", *[f"Berth {number}" for number in range(20)]]
        )
        assert {thread["message_count"] for thread in threads} == {1}
        assert await unread(mail, inbox) == 21


async def test_an_inbox_that_is_deleted_while_mail_waits_for_it(known_inbox: tuple[InboxMail, str]) -> None:
    mail, inbox = known_inbox
    async with locked(mail, inbox) as other:
        waiting = await offered(mail, HELP, number=2)
        await waits(mail)
        await other.execute("DELETE FROM directory_inboxes WHERE inbox_id = $1", UUID(inbox))
        await other.execute("DELETE FROM inboxes WHERE id = $1", UUID(inbox))
    assert (await waiting).startswith("250")
    assert len(await mail.received()) == 2
    assert await mail.team.world.pool.fetchval("SELECT count(*) FROM inbox_messages") == 1


async def test_a_block_that_ends_behind_mail_that_waits(known_inbox: tuple[InboxMail, str]) -> None:
    """What is read with the lock says where the block ends: searches find the mail."""
    mail, inbox = known_inbox
    async with locked(mail, inbox) as other:
        waiting = await offered(mail, HELP, number=2)
        await waits(mail)
        sql = "UPDATE inboxes SET described_to = 'ffffffff-ffff-ffff-ffff-ffffffffffff' WHERE id = $1"
        await other.execute(sql, UUID(inbox))
    assert (await waiting).startswith("250")
    assert await mail.team.world.pool.fetchval("SELECT count(*) FROM inbox_search_late") == 1


async def test_an_inbox_of_a_nearer_address(known_inbox: tuple[InboxMail, str]) -> None:
    """inboxes.md 9.1: what is known of an address is no longer so."""
    mail, inbox = known_inbox
    assert (await mail.brings("help+desk@harbor.example", message_id="<1@x>")).startswith("250")
    desk = await mail.inbox("help+desk@harbor.example")
    assert (await mail.brings("help+desk@harbor.example", message_id="<2@x>")).startswith("250")
    assert (len(await mail.threads(inbox)), len(await mail.threads(desk))) == (2, 1)


async def test_a_webhook_that_is_new(known_inbox: tuple[InboxMail, str]) -> None:
    mail, _ = known_inbox
    await hook(mail.team, "inbox.email.received")
    assert (await mail.brings(HELP, message_id="<1@x>")).startswith("250")
    assert (await mail.brings(HELP, message_id="<2@x>")).startswith("250")
    sql = "SELECT count(*) FROM webhook_deliveries WHERE kind = 'inbox.email.received'"
    assert await mail.team.world.pool.fetchval(sql) == 2


async def test_a_team_with_a_quota(known_inbox: tuple[InboxMail, str]) -> None:
    mail, inbox = known_inbox
    await mail.team.world.pool.execute("UPDATE teams SET daily_quota = 2 WHERE id = $1", mail.team.id)
    for number in range(3):
        assert (await mail.brings(HELP, message_id=f"<{number}@x>")).startswith("250")
    assert len(await mail.threads(inbox)) == 4
