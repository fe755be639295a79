"""Mail that comes in for inboxes (inboxes.md section 9), by SMTP."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from kit.inbox_mail import CUSTOMER, FORGED, InboxMail, inbox_mail, letter
from kit.inboxes import inbox_domain
from kit.webhook_events import subscribe

HELP = "help@harbor.example"

KINDS = """
    SELECT kind FROM webhook_deliveries WHERE team_id = $1 ORDER BY event_id
"""


@pytest.fixture
def mail(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[InboxMail]:
    return inbox_mail(database_url, tmp_path)


async def test_a_message_comes_into_a_thread_of_the_inbox_of_its_address(mail: InboxMail) -> None:
    """inboxes.md 9.1 and 9.2: in any case of letters; the received email has the same id."""
    inbox = await mail.inbox(HELP)
    answer = await mail.brings("HeLp@Harbor.Example", message_id="<a@customer.example>")
    assert answer.startswith("250 2.0.0")
    [thread] = await mail.threads(inbox)
    assert thread["subject"] == "Refund"
    assert thread["from"] == f"Iris Vale <{CUSTOMER}>"
    assert thread["to"] == ["HeLp@harbor.example"]
    assert (thread["message_count"], thread["read"], thread["has_attachment"]) == (1, False, False)
    [email] = await mail.emails(inbox, thread)
    [received] = await mail.received()
    assert email["id"] == received["id"]
    assert (email["direction"], email["message_id"]) == ("inbound", "<a@customer.example>")
    assert email["text"].strip() == "Where is it?"
    shown = (await mail.team.get(f"/inboxes/{inbox}")).json()
    assert (shown["unread"], shown["last_received"]) == (1, thread["received_at"])


@pytest.mark.parametrize(
    ("addresses", "to", "reached"),
    [
        (["help"], ["help+billing"], {"help": ["help+billing"]}),
        (["help", "help+billing"], ["help+billing"], {"help+billing": ["help+billing"]}),
        (["help"], ["help+a+b"], {"help": ["help+a+b"]}),
        (["help"], ["he.lp"], {}),
        (["help"], ["helper"], {}),
        (["help"], ["help", "HELP+x"], {"help": ["help", "HELP+x"]}),
        (["help", "sales"], ["help", "sales"], {"help": ["help"], "sales": ["sales"]}),
        (["help"], ["+help"], {}),
        (["help"], ["nobody", "help"], {"help": ["help"]}),
    ],
)
async def test_which_inbox_an_address_means(
    mail: InboxMail, addresses: list[str], to: list[str], reached: dict[str, list[str]]
) -> None:
    """inboxes.md 9.1: exact before the base of a plus address; one message for two recipients."""
    inboxes = {name: await mail.inbox(f"{name}@harbor.example") for name in addresses}
    recipients = [f"{name}@harbor.example" for name in to]
    assert (await mail.brings(*recipients)).startswith("250")
    assert len(await mail.received()) == 1
    found = {}
    for name, inbox in inboxes.items():
        for thread in await mail.threads(inbox):
            found[name] = [one.removesuffix("@harbor.example") for one in thread["to"]]
    assert found == reached


async def test_an_inbox_gets_what_comes_the_moment_after_it_was_created(mail: InboxMail) -> None:
    """What the address meant a moment ago is not remembered; nor after the inbox is gone."""
    await mail.brings(HELP, text="before")
    inbox = await mail.inbox(HELP)
    await mail.brings(HELP, text="with")
    assert len(await mail.threads(inbox)) == 1
    await mail.team.call("DELETE", f"/inboxes/{inbox}")
    assert (await mail.brings(HELP, text="without")).startswith("250")
    assert len(await mail.received()) == 3
    again = await mail.inbox(HELP)
    assert await mail.threads(again) == []
    await mail.brings(HELP, text="again")
    assert len(await mail.threads(again)) == 1


async def test_the_receiving_address_takes_mail_until_its_inbox_is_deleted(
    database_url: str, tmp_path: Path
) -> None:
    """inboxes.md 3.5: then it is refused with 550 5.1.1."""
    async with inbox_mail(database_url, tmp_path, inbound_domain="in.pillar.example") as mail:
        inbox = await mail.inbox(HELP, forwarding=True)
        address = (await mail.team.get(f"/inboxes/{inbox}")).json()["receiving_address"]
        local, domain = address.split("@")
        assert (await mail.brings(address, message_id="<1@x>")).startswith("250")
        assert (await mail.brings(f"{local.upper()}+list@{domain}", message_id="<2@x>")).startswith("250")
        assert [len(thread["to"]) for thread in await mail.threads(inbox)] == [1, 1]
        assert (await mail.brings(f"{'a' * 24}@{domain}")).startswith("550 5.1.1")
        assert (await mail.brings(f"{local}x@{domain}")).startswith("550 5.1.1")
        await mail.team.call("DELETE", f"/inboxes/{inbox}")
        answers = [await mail.brings(address) for _ in range(3)]
        for _ in range(60):
            if answers[-1].startswith("550 5.1.1"):
                break
            await asyncio.sleep(0.05)
            answers.append(await mail.brings(address))
        assert answers[-1].startswith("550 5.1.1"), "the address counts for a second at most"


async def test_one_message_for_two_teams_comes_into_an_inbox_of_each(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    other = await mail.team.world.team("Quay")
    await inbox_domain(other, "quay.example")
    made = await other.post("/inboxes", {"email_address": "desk@quay.example"})
    assert (await mail.brings(HELP, "desk@quay.example")).startswith("250")
    [thread] = await mail.threads(inbox)
    assert thread["to"] == [HELP]
    [theirs] = (await other.get(f"/inboxes/{made.json()['id']}/threads")).json()["data"]
    assert theirs["to"] == ["desk@quay.example"]
    assert theirs["id"] != thread["id"]


async def test_the_same_message_again_is_accepted_and_not_stored(mail: InboxMail) -> None:
    """inboxes.md 9.3: by Message-ID and body, whatever else its header says; another body is another."""
    inbox = await mail.inbox(HELP)
    for day in ("Mon", "Tue"):
        answer = await mail.brings(HELP, message_id="<a@x>", headers=[f"X-Path: {day}"])
        assert answer.startswith("250")
    assert answer == "250 2.0.0 Ok, it was stored before"
    [thread] = await mail.threads(inbox)
    assert thread["message_count"] == 1
    assert len(await mail.received()) == 1
    await mail.brings(HELP, "nobody@harbor.example", message_id="<a@x>", headers=["X-Path: Wed"])
    assert len(await mail.received()) == 2, "nobody@ had not got it"
    assert (await mail.threads(inbox))[0]["message_count"] == 1
    await mail.brings(HELP, message_id="<a@x>", text="Another body")
    assert sorted([one["message_count"] for one in await mail.threads(inbox)]) == [1, 1]


async def test_spam_opens_threads_in_spam_and_joins_only_these(mail: InboxMail) -> None:
    """inboxes.md 9.7: its answers to a conversation do not come into it; unread counts only the inbox."""
    inbox = await mail.inbox(HELP)
    await mail.brings(HELP, message_id="<a@x>")
    await mail.brings(HELP, message_id="<b@x>", answers="<a@x>", sender=FORGED)
    await mail.brings(HELP, message_id="<c@x>", answers="<b@x>", sender=FORGED, subject="Re: Refund")
    [thread] = await mail.threads(inbox)
    assert thread["message_count"] == 1
    [spam] = await mail.threads(inbox, "?folder=spam")
    assert (spam["message_count"], spam["folder"]) == (2, "spam")
    assert (await mail.team.get(f"/inboxes/{inbox}")).json()["unread"] == 1
    await mail.brings(HELP, message_id="<d@x>", answers="<c@x>")
    [spam] = await mail.threads(inbox, "?folder=spam")
    assert spam["message_count"] == 3, "what is no spam joins by the id that it names"


@pytest.mark.parametrize(
    ("header", "sender", "is_automatic"),
    [
        ("X-Nothing: 1", CUSTOMER, False),
        ("Auto-Submitted: no", CUSTOMER, False),
        ("Auto-Submitted: auto-replied (vacation)", CUSTOMER, True),
        ("Precedence: Bulk", CUSTOMER, True),
        ("Precedence: first-class", CUSTOMER, False),
        ("List-Id: <desk.customer.example>", CUSTOMER, True),
        ("X-Nothing: 1", "", True),
    ],
)
async def test_automatic_mail_is_marked(
    mail: InboxMail, header: str, sender: str, *, is_automatic: bool
) -> None:
    """inboxes.md 9.8."""
    await mail.inbox(HELP)
    assert (await mail.brings(HELP, headers=[header], envelope_sender=sender)).startswith("250")
    found = await mail.team.world.pool.fetchval("SELECT is_automatic FROM inbox_messages")
    assert found is is_automatic


async def test_without_id_and_subject_it_is_a_message_all_the_same(mail: InboxMail) -> None:
    """inboxes.md 9.9: and nothing ever joins it."""
    inbox = await mail.inbox(HELP)
    for text in ("one", "two"):
        await mail.brings(HELP, subject=None, text=text)
    threads = await mail.threads(inbox)
    assert [thread["subject"] for thread in threads] == [None, None]
    [email] = await mail.emails(inbox, threads[0])
    assert (email["message_id"], email["subject"]) == (None, None)


@pytest.mark.parametrize(
    "raw", [b"\xff no header at all", b"Subject: =?utf-8?b?////?=\r\nTo\r\n\r\n\xff", b""]
)
async def test_broken_mime_is_stored_with_what_could_be_read(mail: InboxMail, raw: bytes) -> None:
    """inboxes.md 9.9: mail without an author counts as forged, so it is in spam."""
    inbox = await mail.inbox(HELP)
    assert (await mail.client.deliver(raw, [HELP])).startswith("250")
    [thread] = await mail.threads(inbox, "?folder=spam")
    assert len(await mail.emails(inbox, thread)) == 1


async def test_more_than_fifty_hops_are_refused(mail: InboxMail) -> None:
    """inboxes.md 9.8."""
    inbox = await mail.inbox(HELP)
    hops = ["Received: from a by b; Sat, 03 Oct 2026 08:15:00 +0000"] * 51
    assert (await mail.brings(HELP, headers=hops)).startswith("554 5.4.6")
    assert await mail.threads(inbox) == []


async def test_events_come_in_the_order_of_the_contract(mail: InboxMail) -> None:
    """inboxes.md section 10: `email.received` first, then those of the inbox, all once."""
    inbox = await mail.inbox(HELP)
    wanted = ["email.received", "inbox.thread.created", "inbox.email.received"]
    await subscribe(mail.team, [*wanted, "inbox.thread.folder.updated"])
    await mail.brings(HELP, message_id="<a@x>")
    pool = mail.team.world.pool
    kinds = [row["kind"] for row in await pool.fetch(KINDS, mail.team.id)]
    assert kinds == wanted
    [thread] = await mail.threads(inbox)
    await mail.team.call("PATCH", f"/inboxes/{inbox}/threads/{thread['id']}", {"folder": "archive"})
    await pool.execute("DELETE FROM webhook_deliveries")
    await mail.brings(HELP, message_id="<b@x>", answers="<a@x>")
    kinds = [row["kind"] for row in await pool.fetch(KINDS, mail.team.id)]
    assert kinds == ["email.received", "inbox.thread.folder.updated", "inbox.email.received"]
    assert (await mail.threads(inbox))[0]["folder"] == "inbox"


async def test_answers_that_come_at_the_same_moment_make_one_thread(mail: InboxMail) -> None:
    """inboxes.md 9.10: over many connections."""
    inbox = await mail.inbox(HELP)
    await mail.brings(HELP, message_id="<0@x>")

    async def answer(number: int) -> None:
        session = await mail.client.connect()
        await session.offer([HELP])
        raw = letter(to=HELP, message_id=f"<{number}@x>", answers=f"<{number - 1}@x>", references="<0@x>")
        assert (await session.text(raw)).startswith("250")

    await asyncio.gather(*[answer(number) for number in range(1, 21)])
    [thread] = await mail.threads(inbox)
    assert thread["message_count"] == 21
    assert (await mail.team.get(f"/inboxes/{inbox}")).json()["unread"] == 1


async def test_mail_for_no_inbox_does_not_wait_for_the_lock_of_one(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    async with mail.team.world.pool.acquire() as other, other.transaction():
        await other.execute("SELECT FROM inboxes FOR NO KEY UPDATE")
        session = await mail.client.connect()
        await session.offer([HELP])
        waiting = asyncio.create_task(session.text(letter(to=HELP)))
        assert (await mail.brings("nobody@harbor.example")).startswith("250")
        assert not waiting.done()
    assert (await waiting).startswith("250")
    assert len(await mail.threads(inbox)) == 1


async def test_a_large_message_has_its_thread_too(mail: InboxMail) -> None:
    inbox = await mail.inbox(HELP)
    text = "\r\n".join(["x" * 70] * 12_000)
    assert (await mail.brings(HELP, message_id="<a@x>", text=text)).startswith("250")
    again = await mail.brings(HELP, message_id="<a@x>", text=text, headers=["X-Path: 2"])
    assert again == "250 2.0.0 Ok, it was stored before"
    [thread] = await mail.threads(inbox)
    [email] = await mail.emails(inbox, thread)
    assert len(email["text"]) > 800_000
