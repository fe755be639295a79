"""Replies and forwards over the API (inboxes.md 6.2 and 6.3)."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Any

import httpx
import pytest

from kit.inbox_rows import Inbox, Thread

HEADERS = "SELECT headers FROM contents WHERE id = $1"

ORIGINAL = (
    b"From: Iris Vale <iris@customer.example>\r\n"
    b"To: Help <help+88@harbor.example>, kai@customer.example\r\n"
    b"Cc: Ola <ola@customer.example>\r\n"
    b"Subject: Refund for order 88\r\n"
    b"Message-ID: <88.a1@customer.example>\r\n"
    b"References: <86@customer.example>\r\n <87@customer.example>\r\n"
    b"MIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
    b"--b\r\nContent-Type: text/plain\r\n\r\nWhere is it?\r\n"
    b"--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=invoice.pdf\r\n"
    b"Content-Transfer-Encoding: base64\r\n\r\naW52b2ljZQ==\r\n--b--\r\n"
)


def file(text: str = "invoice", **fields: Any) -> dict[str, Any]:
    return {"content": b64encode(text.encode()).decode(), "filename": "note.txt", **fields}


async def answered(thread: Thread, email: object, what: str, **fields: Any) -> httpx.Response:
    return await thread.inbox.team.post(f"{thread.url}/emails/{email}/{what}", fields)


async def sent(thread: Thread, email: object, what: str = "reply", **fields: Any) -> dict[str, Any]:
    """The email that this answer became."""
    answer = await answered(thread, email, what, **fields)
    assert answer.status_code == 200, answer.text
    assert list(answer.json()) == ["id"]
    return await thread.inbox.team.email(answer.json()["id"])


async def headers_of(inbox: Inbox, email: dict[str, Any]) -> str:
    found: str = await inbox.team.world.pool.fetchval(HEADERS, email["id"])
    return found


async def test_a_reply_goes_to_the_sender_and_joins_the_thread(inbox: Inbox) -> None:
    thread = await inbox.thread("Refund for order 88", folder="archive")
    email = await thread.received(ORIGINAL)
    reply = await sent(thread, email, text="Refund issued.", attachments=[file()])
    assert (reply["from"], reply["to"], reply["cc"]) == (
        "help@harbor.example",
        ["iris@customer.example"],
        None,
    )
    assert (reply["subject"], reply["text"]) == ("Re: Refund for order 88", "Refund issued.")
    headers = await headers_of(inbox, reply)
    original = (await thread.get(f"/emails/{email}")).json()["message_id"]
    assert f'["In-Reply-To","{original}"]' in headers
    assert f'["References","<86@customer.example> <87@customer.example> {original}"]' in headers
    assert f'["X-Pillarbox-Inbox","{inbox.id}"]' in headers
    last = (await thread.get("/emails")).json()["data"][-1]
    assert (last["id"], last["direction"], last["read"]) == (reply["id"], "outbound", True)
    assert [one["filename"] for one in last["attachments"]] == ["note.txt"]
    assert (await thread.get()).json()["folder"] == "archive", "inboxes.md 8"


async def test_a_reply_to_all_copies_the_others(inbox: Inbox) -> None:
    thread = await inbox.thread()
    email = await thread.received(ORIGINAL)
    reply = await sent(
        thread,
        email,
        html="<p>Done</p>",
        reply_all=True,
        bcc="boss@x.example",
        subject="Order 88",
        headers={"X-Ticket": "88"},
    )
    assert (reply["to"], reply["cc"], reply["bcc"]) == (
        ["iris@customer.example"],
        ["kai@customer.example", "ola@customer.example"],
        ["boss@x.example"],
    )
    assert (reply["subject"], reply["text"]) == ("Order 88", "Done")
    assert '["X-Ticket","88"]' in await headers_of(inbox, reply)
    again = await sent(thread, reply["id"], text="And more.", reply_all=True)
    assert (again["to"], again["cc"]) == (reply["to"], reply["cc"])
    assert again["bcc"] is None, "the original's is never copied"
    headers = await headers_of(inbox, again)
    assert f'["In-Reply-To","{reply["message_id"]}"]' in headers
    assert f'@customer.example> {reply["message_id"]}"]' in headers
    await sent(thread, reply["id"], text="Once more.")


async def test_a_reply_is_found_by_everybody_whom_it_goes_to(inbox: Inbox) -> None:
    thread = await inbox.thread()
    email = await thread.received(ORIGINAL)
    reply = await sent(
        thread, email, text="Done.", cc="Copy <copied@quay.example>", bcc="Hidden <unseen@quay.example>"
    )
    for query in ("iris@customer.example", "copied", "hidden", "unseen@quay.example"):
        found = (await inbox.get(f"/threads/search?query={query}%20done")).json()["data"]
        assert [one["matched_email_id"] for one in found] == [reply["id"]], query


async def test_the_name_of_the_inbox_is_the_senders(inbox: Inbox) -> None:
    thread = await inbox.thread()
    email = await thread.received(ORIGINAL)
    for name, shown in (
        ("Mina at Harbor", "Mina at Harbor <help@harbor.example>"),
        ("Höfn, Mina (88)", '"Höfn, Mina (88)" <help@harbor.example>'),
        ('a "b" \\ c', '"a \\"b\\" \\\\ c" <help@harbor.example>'),
    ):
        await inbox.team.world.pool.execute("UPDATE inboxes SET from_name = $1", name)
        reply = await sent(thread, email, text="x")
        assert reply["from"] == shown
        await inbox.team.world.turn()
        assert (await inbox.team.email(reply["id"]))["last_event"] == "delivered"


async def test_a_forward_has_the_original_and_its_attachments(inbox: Inbox) -> None:
    thread = await inbox.thread("Refund for order 88")
    email = await thread.received(ORIGINAL)
    forward = await sent(
        thread, email, "forward", to="ada@quay.example", text="Please see.", attachments=[file()]
    )
    assert (forward["to"], forward["subject"]) == (["ada@quay.example"], "Fwd: Refund for order 88")
    assert forward["text"].startswith("Please see.\n\n---------- Forwarded message ----------\nFrom: Iris")
    assert "To: help+88@harbor.example, kai@customer.example\nCc: ola@customer.example" in forward["text"]
    assert forward["text"].rstrip().endswith("Where is it?")
    assert forward["html"] is None
    headers = await headers_of(inbox, forward)
    assert "In-Reply-To" not in headers
    original = (await thread.get(f"/emails/{email}")).json()["message_id"]
    assert f'<87@customer.example> {original}"]' in headers
    files = (await inbox.team.get(f"/emails/{forward['id']}/attachments")).json()["data"]
    assert [(one["filename"], one["content_type"], one["size"]) for one in files] == [
        ("note.txt", "text/plain", 7),
        ("invoice.pdf", "application/pdf", 7),
    ]
    fetched = await inbox.team.http.get(files[1]["download_url"])
    assert fetched.content == b"invoice"
    assert (await thread.get("/emails")).json()["data"][-1]["id"] == forward["id"]
    further = await sent(thread, forward["id"], "forward", to=["kai@quay.example"], subject="All of it")
    assert further["subject"] == "All of it"
    files = (await inbox.team.get(f"/emails/{further['id']}/attachments")).json()["data"]
    assert [one["filename"] for one in files] == ["note.txt", "invoice.pdf"]
    assert further["text"].count("---------- Forwarded message ----------") == 2


async def test_what_cannot_be_forwarded_is_refused(inbox: Inbox) -> None:
    thread = await inbox.thread()
    by_path = await thread.sent(attachments=[{"path": "https://files.example/a.pdf", "filename": "a.pdf"}])
    answer = await answered(thread, by_path, "forward", to="ada@quay.example")
    assert (answer.status_code, answer.json()["name"]) == (422, "validation_error")
    assert "`path`" in answer.json()["message"]
    large = b"x" * (13 * 1024 * 1024)
    whole = await thread.sent(attachments=[{"content": b64encode(large).decode(), "filename": "a.bin"}])
    more = [{"content": b64encode(large).decode(), "filename": "b.bin"}]
    answer = await answered(thread, whole, "forward", to="ada@quay.example", attachments=more)
    assert (answer.status_code, answer.json()["name"]) == (422, "invalid_attachment")
    blocked = await thread.received(ORIGINAL.replace(b"invoice.pdf", b"invoice.exe"))
    answer = await answered(thread, blocked, "forward", to="ada@quay.example")
    assert (answer.status_code, answer.json()["name"]) == (422, "invalid_attachment")
    many = await thread.sent(attachments=[{"content": "YQ==", "filename": f"{n}.txt"} for n in range(100)])
    answer = await answered(thread, many, "forward", to="ada@quay.example", attachments=more)
    assert (answer.status_code, answer.json()["name"]) == (422, "invalid_attachment")
    assert "at most 100 attachments" in answer.json()["message"]
    assert len((await thread.get("/emails")).json()["data"]) == 5


WRONG: dict[str, tuple[dict[str, Any], int, str]] = {
    "nothing said": ({}, 422, "missing_required_field"),
    "blanks": ({"text": " \n", "html": ""}, 422, "missing_required_field"),
    "text that is none": ({"text": 1}, 422, "validation_error"),
    "an address": ({"text": "x", "cc": "nobody"}, 422, "validation_error"),
    "fifty others": ({"text": "x", "cc": [f"a{n}@x.example" for n in range(50)]}, 422, "validation_error"),
    "fifty others in two": (
        {
            "text": "x",
            "cc": [f"a{n}@x.example" for n in range(25)],
            "bcc": [f"b{n}@x.example" for n in range(25)],
        },
        422,
        "validation_error",
    ),
    "a line break": ({"text": "x", "subject": "a\nb"}, 422, "validation_error"),
    "to all": ({"text": "x", "reply_all": "yes"}, 422, "validation_error"),
    "a header of ours": ({"text": "x", "headers": {"in-reply-to": "<a@x>"}}, 422, "validation_error"),
    "an empty file": ({"text": "x", "attachments": [file("")]}, 422, "invalid_attachment"),
    "a blocked file": ({"text": "x", "attachments": [file(filename="a.js")]}, 422, "invalid_attachment"),
    "a local path": (
        {"text": "x", "attachments": [{"path": "file:///etc/passwd"}]},
        422,
        "invalid_attachment",
    ),
    "too much": (
        {"text": "x", "attachments": [file("x" * 13_500_000), file("x" * 13_500_000)]},
        422,
        "invalid_attachment",
    ),
}


async def test_what_is_wrong_is_refused_and_nothing_is_sent(inbox: Inbox) -> None:
    thread = await inbox.thread()
    email = await thread.received(ORIGINAL)
    for what, (body, status, name) in WRONG.items():
        answer = await answered(thread, email, "reply", **body)
        assert (answer.status_code, answer.json()["name"]) == (status, name), what
    for body, name in (
        ({"text": "x"}, "missing_required_field"),
        ({"to": []}, "missing_required_field"),
        ({"to": [f"a{n}@x.example" for n in range(50)], "cc": "b@x.example"}, "validation_error"),
        ({"to": "ada@quay.example", "headers": {"References": "<a@x>"}}, "validation_error"),
    ):
        answer = await answered(thread, email, "forward", **body)
        assert (answer.status_code, answer.json()["name"]) == (422, name), body
    other = await inbox.thread("Another")
    for where in (other, thread):
        missing = email if where is other else inbox.new_id()
        answer = await answered(where, missing, "reply", text="x")
        assert (answer.status_code, answer.json()["message"]) == (404, "Email not found")
    nowhere = Thread(inbox=inbox, id=inbox.new_id(), messages=[])
    answer = await answered(nowhere, email, "reply", text="x")
    assert (answer.status_code, answer.json()["message"]) == (404, "Thread not found")
    assert (await answered(thread, "1", "reply", text="x")).json()["name"] == "invalid_parameter"
    assert await inbox.team.world.pool.fetchval("SELECT count(*) FROM emails") == 0


async def test_a_reply_that_would_go_to_the_inbox_alone_is_refused(inbox: Inbox) -> None:
    thread = await inbox.thread()
    own = ORIGINAL.replace(b"Cc: Ola", b"Reply-To: help+form@harbor.example\r\nCc: Ola")
    email = await thread.received(own)
    answer = await answered(thread, email, "reply", text="x")
    assert (answer.status_code, answer.json()["name"]) == (422, "validation_error")


async def test_a_reply_is_repeated_by_its_key(inbox: Inbox) -> None:
    thread = await inbox.thread()
    email = await thread.received(ORIGINAL)
    url = f"{thread.url}/emails/{email}/reply"
    answers = await asyncio.gather(
        *[inbox.team.post(url, {"text": "x"}, idempotency_key="once") for _ in range(4)]
    )
    good = [one for one in answers if one.status_code == 200]
    assert {one.status_code for one in answers} <= {200, 409}
    again = await inbox.team.post(url, {"text": "x"}, idempotency_key="once")
    assert (again.status_code, again.content) == (200, good[0].content)
    assert again.headers["idempotent-replayed"] == "true"
    assert len((await thread.get("/emails")).json()["data"]) == 3


@pytest.mark.parametrize("what", ["reply", "forward"])
async def test_a_key_counts_once_by_id_and_by_address(inbox: Inbox, what: str) -> None:
    thread = await inbox.thread()
    email = await thread.received(ORIGINAL)
    path = f"threads/{thread.id}/emails/{email}/{what}"
    body = {"text": "x", "to": "ada@quay.example"}
    names = [inbox.id, "help%40harbor.example", "Help@HARBOR.example", str(inbox.id).upper()] * 2
    answers = await asyncio.gather(
        *[inbox.team.post(f"/inboxes/{name}/{path}", body, idempotency_key="once") for name in names]
    )
    assert {one.status_code for one in answers} <= {200, 409}
    after = await inbox.team.post(f"/inboxes/{names[1]}/{path}", body, idempotency_key="once")
    assert {one.content for one in answers if one.status_code == 200} == {after.content}
    assert len((await thread.get("/emails")).json()["data"]) == 3


@pytest.mark.parametrize("what", ["reply", "forward"])
async def test_answers_at_once_are_all_in_the_thread(inbox: Inbox, what: str) -> None:
    thread = await inbox.thread()
    email = await thread.received(ORIGINAL)
    bodies = [{"text": f"{n}", "to": "ada@quay.example"} for n in range(12)]
    found = await asyncio.gather(*[sent(thread, email, what, **body) for body in bodies])
    listed = (await thread.get("/emails?limit=100")).json()["data"]
    assert {one["id"] for one in found} < {one["id"] for one in listed}
    [item] = (await inbox.get("/threads")).json()["data"]
    assert item["message_count"] == 14
    ids = await inbox.team.world.pool.fetchval("SELECT count(*) FROM emails WHERE inbox_id = $1", inbox.id)
    assert ids == 12


async def test_an_automatic_message_is_answered_only_where_the_caller_says_so(inbox: Inbox) -> None:
    """inboxes.md 6.2 and 9.8, RFC 3834 2."""
    thread = await inbox.thread("Refund for order 88")
    email = await thread.received(b"Auto-Submitted: auto-replied\r\n" + ORIGINAL)
    marked = "UPDATE inbox_messages SET is_automatic = true WHERE id = $1"
    await inbox.team.world.pool.execute(marked, email)
    refused = await answered(thread, email, "reply", text="Thanks.")
    assert (refused.status_code, refused.json()["name"]) == (422, "validation_error")
    assert "`allow_automatic`" in refused.json()["message"]
    assert (await answered(thread, email, "reply", text="x", allow_automatic="yes")).status_code == 422
    assert (await sent(thread, email, text="Thanks.", allow_automatic=True))["last_event"]


async def test_programs_that_answer_each_other_come_to_an_end(inbox: Inbox) -> None:
    """inboxes.md 6.2: a thread gets 20 messages within ten minutes, also from several requests at once."""
    thread = await inbox.thread("Refund for order 88")
    email = await thread.received(ORIGINAL)
    replies = await asyncio.gather(*(answered(thread, email, "reply", text="x") for _ in range(25)))
    assert sorted(reply.status_code for reply in replies) == [200] * 20 + [429] * 5
    last = next(reply for reply in replies if reply.status_code == 429)
    assert (last.json()["name"], last.headers["retry-after"]) == ("rate_limit_exceeded", "600")
    other = await inbox.thread("Another order")
    again = await other.received(ORIGINAL.replace(b"88.a1@", b"89.a1@"))
    answers = [await answered(other, again, "reply", text="x") for _ in range(12)]
    assert [reply.status_code for reply in answers] == [200] * 10 + [429] * 2, "30 to one address"
