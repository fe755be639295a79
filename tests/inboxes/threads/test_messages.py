"""Messages of a thread with their bodies and attachments (inboxes.md 6.1 and 6.4)."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from kit.inbox_rows import Inbox, an_inbox
from pillarbox.inboxes.messages.lists import message_page
from pillarbox.inboxes.messages.reading import AT_ONCE, MessageReading
from pillarbox.inboxes.received_mail import MessageBody, ReceivedMailSource
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page
from pillarbox.kernel.wire.problems import ServerOverloaded

PIXEL = b64encode(b"not really a picture").decode()

WITH_PICTURE = "\r\n".join(
    (
        "From: Iris Vale <iris@customer.example>",
        "To: help@harbor.example",
        "Subject: Refund for order 88",
        "Message-ID: <88.a1@customer.example>",
        "MIME-Version: 1.0",
        'Content-Type: multipart/related; boundary="b"',
        "",
        "--b",
        "Content-Type: text/html; charset=utf-8",
        "",
        '<p>Hello <img src="cid:logo"></p>',
        "--b",
        "Content-Type: image/png",
        "Content-ID: <logo>",
        "Content-Disposition: inline; filename=logo.png",
        "Content-Transfer-Encoding: base64",
        "",
        PIXEL,
        "--b",
        "Content-Type: application/pdf",
        "Content-Disposition: attachment; filename=invoice.pdf",
        "",
        "pdf",
        "--b--",
        "",
    )
).encode()


def plain(text: str) -> bytes:
    return f"From: iris@customer.example\r\nSubject: Refund\r\n\r\n{text}\r\n".encode()


async def test_a_message_that_came_in_has_its_fields_in_order(inbox: Inbox) -> None:
    thread = await inbox.thread()
    email_id = await thread.received(WITH_PICTURE)
    shown = (await thread.get(f"/emails/{email_id}")).json()
    files = shown.pop("attachments")
    assert shown == {
        "id": email_id,
        "direction": "inbound",
        "from": "Iris Vale <iris@customer.example>",
        "to": ["help@harbor.example"],
        "cc": [],
        "bcc": [],
        "reply_to": [],
        "subject": "Re: Refund",
        "message_id": shown["message_id"],
        "html": f'<p>Hello <img src="data:image/png;base64,{PIXEL}"></p>',
        "text": shown["text"],
        "read": False,
        "received_at": "2026-10-01T08:01:00.000Z",
        "extracted_text": shown["extracted_text"],
    }
    assert [(file["filename"], file["size"]) for file in files] == [("logo.png", 20), ("invoice.pdf", 3)]
    order = "id direction from to cc bcc reply_to subject message_id html text attachments read received_at"
    assert list((await thread.get(f"/emails/{email_id}")).json()) == [*order.split(), "extracted_text"]
    received = (await inbox.team.get(f"/emails/receiving/{email_id}")).json()
    assert received["html"] == shown["html"]


async def test_a_message_that_was_sent_is_read_and_has_the_bodies_of_its_email(inbox: Inbox) -> None:
    thread = await inbox.thread()
    note = {"content": "aGk=", "filename": "note.txt"}
    email_id = await thread.sent(html="<b>Done</b>", text="Done", attachments=[note])
    shown = (await thread.get(f"/emails/{email_id}")).json()
    assert shown["direction"] == "outbound"
    assert (shown["html"], shown["text"]) == ("<b>Done</b>", "Done")
    assert (shown["read"], shown["reply_to"]) == (True, [])
    assert [(file["filename"], file["size"]) for file in shown["attachments"]] == [("note.txt", 2)]
    assert (await inbox.team.email(email_id))["id"] == email_id


async def test_after_goes_to_newer_emails(inbox: Inbox) -> None:
    thread = await inbox.thread()
    for at in range(1, 7):
        await thread.message("inbound" if at % 2 else "outbound", at=at)
    ids = [str(one) for one in thread.messages]

    async def page(query: str) -> tuple[list[str], bool]:
        found = (await thread.get(f"/emails{query}")).json()
        assert list(found) == ["object", "has_more", "data"]
        return [email["id"] for email in found["data"]], found["has_more"]

    assert await page("") == (ids, False)
    assert await page("?limit=3") == (ids[:3], True)
    assert await page(f"?limit=3&after={ids[2]}") == (ids[3:6], True)
    assert await page(f"?limit=3&after={ids[3]}") == (ids[4:], False)
    assert await page(f"?limit=3&before={ids[5]}") == (ids[2:5], True)
    assert await page(f"?limit=3&before={ids[3]}") == (ids[:3], False)
    foreign = str((await inbox.thread()).messages[0])
    for query, status in ((f"?after={foreign}", 404), ("?limit=0", 422), ("?after=x", 422)):
        assert (await thread.get(f"/emails{query}")).status_code == status


async def test_attachments_have_links_of_an_hour(inbox: Inbox) -> None:
    thread = await inbox.thread()
    note = {"content": "aGk=", "filename": "note.txt"}
    received = await thread.received(WITH_PICTURE, at=1)
    sent = await thread.sent(now=2, attachments=[note])
    outside = inbox.team.world.client(None)
    for email_id, name, octets in ((received, "invoice.pdf", b"pdf"), (sent, "note.txt", b"hi")):
        listed = (await thread.get(f"/emails/{email_id}/attachments")).json()
        assert (listed["object"], listed["has_more"]) == ("list", False)
        [item] = [one for one in listed["data"] if one["filename"] == name]
        order = "id filename size content_type content_disposition content_id download_url expires_at"
        assert list(item) == order.split()
        assert item["content_disposition"] == "attachment"
        assert (await outside.get(item["download_url"])).content == octets
        one = (await thread.get(f"/emails/{email_id}/attachments/{item['id']}")).json()
        assert one.pop("object") == "attachment"
        changing = ("download_url", "expires_at")
        assert {**one, **dict.fromkeys(changing)} == {**item, **dict.fromkeys(changing)}
    for file_id, status in ((received, 404), ("x", 422)):
        answer = await thread.get(f"/emails/{sent}/attachments/{file_id}")
        assert answer.status_code == status


async def test_a_page_of_large_messages_comes_one_by_one(inbox: Inbox) -> None:
    """The same answer as small ones get, octet for octet, but for its length."""
    thread = await inbox.thread()
    texts = [character * AT_ONCE for character in "abc"]
    for at, text in enumerate(texts):
        await thread.received(plain(text), at=at + 1)
    answer = await thread.get("/emails?limit=3")
    assert "content-length" not in answer.headers
    page = json.loads(answer.content)
    assert page["has_more"] is True
    assert [(email["text"] or "").strip() for email in page["data"]] == ["", *texts[:2]]
    assert "content-length" in (await thread.get("/emails?limit=1")).headers


async def test_a_message_that_an_inbox_sent_to_itself_is_one(inbox: Inbox) -> None:
    thread = await inbox.thread()
    email_id = await thread.sent(text="Note to us", attachments=[{"content": "aGk=", "filename": "a.txt"}])
    turn = "UPDATE inbox_messages SET direction = 'inbound' WHERE team_id = $1 AND id = $2"
    await inbox.team.db.run(turn, thread.messages[-1])
    shown = (await thread.get(f"/emails/{email_id}")).json()
    assert (shown["direction"], shown["text"]) == ("inbound", "Note to us")
    assert [file["filename"] for file in shown["attachments"]] == ["a.txt"]


@pytest.mark.parametrize("what", ["", "/attachments"])
async def test_an_email_of_another_thread_is_unknown(inbox: Inbox, what: str) -> None:
    thread, other = await inbox.thread(), await inbox.thread()
    foreign = await (await an_inbox(inbox.team, "sales")).thread()
    for message_id in (other.messages[0], foreign.messages[0]):
        answer = await thread.get(f"/emails/{message_id}{what}")
        assert (answer.status_code, answer.json()["message"]) == (404, "Email not found")


class Counting:
    """Received mail that counts which messages are being read, and which were."""

    def __init__(self, received: ReceivedMailSource) -> None:
        self._received = received
        self.reading = 0
        self.read: list[UUID] = []
        self.refusals = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._received, name)

    @asynccontextmanager
    async def turn(self, team_id: UUID, size: int, is_gone: Callable[[], bool]) -> AsyncIterator[None]:
        if self.refusals:
            self.refusals -= 1
            raise ServerOverloaded("Too much.")
        self.reading += 1
        yield
        self.reading -= 1

    async def body(self, db: TeamDb, email_id: UUID) -> MessageBody:
        self.read.append(email_id)
        return await self._received.body(db, email_id)


async def test_a_page_takes_the_memory_of_one_message(inbox: Inbox) -> None:
    """The next message is read when the one before was taken, and memory is held by none in between."""
    thread, db = await inbox.thread(), inbox.team.db
    for at in range(4):
        await thread.received(plain(f"{at}" * AT_ONCE), at=at + 1)
    counting: Any = Counting(inbox.team.world.app.need(ReceivedMailSource))  # type: ignore[type-abstract]
    page = await message_page(db, inbox.id, thread.id, Page(20, after=thread.messages[0]))
    pieces: Any = await MessageReading(counting).listed(db, page, lambda: False)
    taken, count = b"", 0
    counting.refusals = 1
    async for piece in pieces:
        taken += piece
        count += piece.startswith(b"{") and b'"direction"' in piece
        assert len(counting.read) == max(1, count)
        assert counting.reading == 0
    assert [email["id"] for email in json.loads(taken)["data"]] == [str(row.id) for row in page.rows]


async def test_a_page_is_refused_before_it_begins(inbox: Inbox) -> None:
    thread, db = await inbox.thread(), inbox.team.db
    await thread.received(plain("x" * 2 * AT_ONCE))
    counting: Any = Counting(inbox.team.world.app.need(ReceivedMailSource))  # type: ignore[type-abstract]
    counting.refusals = 1
    page = await message_page(db, inbox.id, thread.id, Page(20, after=thread.messages[0]))
    with pytest.raises(ServerOverloaded):
        await MessageReading(counting).listed(db, page, lambda: False)


@pytest.mark.parametrize("is_before", [False, True])
async def test_a_page_ends_with_its_octets(inbox: Inbox, is_before: bool) -> None:
    """At least one message stands in it, those nearest the cursor come first, and pages leave nothing out."""
    thread, db = await inbox.thread(), inbox.team.db
    for at in range(5):
        await thread.received(plain(f"{at}" * 1000), at=at + 1)
    ids = [str(message) for message in thread.messages]
    received = inbox.team.world.app.need(ReceivedMailSource)  # type: ignore[type-abstract]
    for octets, count in ((1, 1), (3000, 2)):
        reading = MessageReading(received, octets)
        seen, cursor = list[str](), UUID(ids[-1 if is_before else 0])
        while True:
            asked = Page(20, before=cursor) if is_before else Page(20, after=cursor)
            page: Any = await reading.listed(
                db, await message_page(db, inbox.id, thread.id, asked), lambda: False
            )
            shown = [str(message.id) for message in page.data]
            # The message that opened the thread is a small one.
            assert shown
            assert len(set(shown) - {ids[0]}) <= count
            seen = shown + seen if is_before else seen + shown
            if not page.has_more:
                break
            cursor = UUID(shown[0 if is_before else -1])
        assert seen == (ids[:-1] if is_before else ids[1:])


async def test_what_came_above_the_quota_is_kept_from_the_team(inbox: Inbox) -> None:
    team, thread = inbox.team, await inbox.thread()
    first = await thread.received(plain("first"), at=1)
    await team.world.pool.execute("UPDATE teams SET daily_quota = 1 WHERE id = $1", team.id)
    second = await thread.received(plain("second"), at=2)
    own = team.using(await team.key())
    for path, status in (
        (f"/emails/{first}", 200),
        (f"/emails/{second}", 403),
        (f"/emails/{second}/attachments", 403),
        ("/emails", 403),
        (f"/emails?before={second}", 200),
    ):
        answer = await own.get(f"{thread.url}{path}")
        assert answer.status_code == status, path
        assert status == 200 or answer.json()["name"] == "email_above_quota"
