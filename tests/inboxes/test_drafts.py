"""Drafts over the API (inboxes.md section 7)."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from kit.inbox_rows import Inbox, Thread, inbox_world
from kit.inboxes import inbox_domain

ORDER = [
    *("object", "id", "type", "to", "cc", "bcc", "subject", "html", "text", "thread_id", "reply_to_email_id"),
    *("email_id", "created_at", "updated_at", "attachments"),
]
ITEM = [
    *("id", "type", "to", "cc", "bcc", "subject", "snippet", "thread_id", "reply_to_email_id", "updated_at"),
    "attachments",
]

HEADERS = "SELECT headers FROM contents WHERE id = $1"

READY = {"to": "iris@customer.example", "subject": "Your order", "text": "Hi Iris"}

ORIGINAL = (
    b"From: Iris Vale <iris@customer.example>\r\n"
    b"To: help@harbor.example, kai@customer.example\r\n"
    b"Cc: Ola <ola@customer.example>\r\n"
    b"Subject: Refund for order 88\r\n"
    b"Message-ID: <88.a1@customer.example>\r\n"
    b"References: <87@customer.example>\r\n\r\nWhere is it?\r\n"
)


def content(text: str) -> str:
    return b64encode(text.encode()).decode()


def file(text: str = "invoice", **fields: Any) -> dict[str, Any]:
    return {"content": content(text), "filename": "invoice.txt", **fields}


async def drafted(inbox: Inbox, **fields: Any) -> str:
    answer = await inbox.team.post(f"{inbox.url}/drafts", fields)
    assert answer.status_code == 201, answer.text
    assert list(answer.json()) == ["object", "id"]
    return str(answer.json()["id"])


async def shown(inbox: Inbox, draft: str) -> dict[str, Any]:
    answer = await inbox.get(f"/drafts/{draft}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def listed(inbox: Inbox, query: str = "") -> list[str]:
    answer = await inbox.get(f"/drafts{query}")
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["data"]]


async def a_reply(thread: Thread, email: object, **fields: Any) -> Any:
    body = {"thread_id": str(thread.id), "reply_to_email_id": str(email), **fields}
    return await thread.inbox.team.post(f"{thread.inbox.url}/drafts", body)


async def test_a_subject_at_its_limit(inbox: Inbox) -> None:
    """A draft takes what an email takes: 998 characters, however many octets."""
    await inbox_domain(inbox.team)
    draft = await drafted(inbox, **READY | {"subject": "é" * 998})
    url = f"{inbox.url}/drafts/{draft}"
    for longer in (999, 2000):
        answer = await inbox.team.call("PATCH", url, {"subject": "a" * longer})
        assert answer.status_code == 422, answer.text
        assert "998" in answer.json()["message"]
        answer = await inbox.team.post(f"{inbox.url}/drafts", READY | {"subject": "a" * longer})
        assert answer.status_code == 422, answer.text
    assert (await inbox.team.post(f"{url}/send", {})).status_code == 200


async def test_a_subject_that_was_stored_before_the_limit_is_refused_when_sent(inbox: Inbox) -> None:
    await inbox_domain(inbox.team)
    draft = await drafted(inbox, **READY)
    await inbox.team.db.run("UPDATE inbox_drafts SET subject = repeat('a', 2000) WHERE team_id = $1")
    answer = await inbox.team.post(f"{inbox.url}/drafts/{draft}/send", {})
    assert (answer.status_code, answer.json()["name"]) == (422, "validation_error")
    assert "`subject`" in answer.json()["message"]
    assert "998" in answer.json()["message"]
    changed = await inbox.team.call("PATCH", f"{inbox.url}/drafts/{draft}", {"subject": "Your order"})
    assert changed.status_code == 200
    assert (await inbox.team.post(f"{inbox.url}/drafts/{draft}/send", {})).status_code == 200


async def test_a_draft_is_shown_as_it_was_given(inbox: Inbox) -> None:
    draft = await drafted(
        inbox,
        to="Iris <iris@customer.example>",
        cc=["ola@x.example"],
        subject="Your order",
        text="Hi",
        attachments=[file()],
    )
    found = await shown(inbox, draft)
    assert list(found) == ORDER
    [attached] = found["attachments"]
    assert list(attached) == ["id", "filename", "content_type", "size"]
    assert attached["size"] == 7
    assert found | {"attachments": [], "created_at": "", "updated_at": ""} == {
        "object": "inbox_draft",
        "id": draft,
        "type": "standalone",
        "to": ["Iris <iris@customer.example>"],
        "cc": ["ola@x.example"],
        "bcc": [],
        "subject": "Your order",
        "html": None,
        "text": "Hi",
        "thread_id": None,
        "reply_to_email_id": None,
        "email_id": None,
        "created_at": "",
        "updated_at": "",
        "attachments": [],
    }
    link = (await inbox.get(f"/drafts/{draft}/attachments/{attached['id']}")).json()
    assert list(link) == [
        *("object", "id", "filename", "size", "content_type", "content_disposition", "content_id"),
        *("download_url", "expires_at"),
    ]
    fetched = await inbox.team.http.get(link["download_url"].replace("http://127.0.0.1:8080", ""))
    assert fetched.text == "invoice"
    assert (await inbox.counts())[1] == 1


async def test_the_list_shows_what_was_changed_last_first(inbox: Inbox) -> None:
    ids = [await drafted(inbox, text=f"  draft\n {n}" + "x" * 200) for n in range(5)]
    await inbox.team.call("PATCH", f"{inbox.url}/drafts/{ids[1]}", {"html": "<p>new <b>text</b></p>"})
    order = [ids[1], ids[4], ids[3], ids[2], ids[0]]
    assert await listed(inbox) == order
    assert await listed(inbox, f"?limit=2&after={ids[4]}") == order[2:4]
    assert await listed(inbox, f"?limit=2&before={ids[2]}") == order[1:3]
    page = (await inbox.get("/drafts?limit=2")).json()
    assert page["has_more"] is True
    assert list(page) == ["object", "has_more", "data"]
    assert list(page["data"][0]) == ITEM
    assert page["data"][0]["snippet"] == "new text"
    assert page["data"][1]["snippet"] == ("draft 4" + "x" * 200)[:140]
    assert (await inbox.get(f"/drafts?after={inbox.new_id()}")).status_code == 404
    for wrong in ("limit=0", "limit=101", "after=x", f"after={ids[0]}&before={ids[1]}"):
        assert (await inbox.get(f"/drafts?{wrong}")).status_code == 422


SOME = "0199a000-0000-7000-8000-000000000001"

WRONG = {
    "nothing in it": ({}, 422, "validation_error"),
    "only empty fields": ({"to": [], "cc": None, "subject": "", "html": ""}, 422, "validation_error"),
    "an address": ({"to": "nobody"}, 422, "validation_error"),
    "too many recipients": (
        {"to": [f"a{n}@x.example" for n in range(50)], "cc": "b@x.example"},
        422,
        "validation_error",
    ),
    "a blank subject": ({"subject": "  "}, 422, "validation_error"),
    "a line break": ({"subject": "a\r\nBcc: x"}, 422, "validation_error"),
    "a long subject": ({"subject": "a" * 999}, 422, "validation_error"),
    "text that is none": ({"text": 1}, 422, "validation_error"),
    "an empty file": ({"attachments": [file("")]}, 422, "invalid_attachment"),
    "a blocked file": ({"attachments": [file(filename="run.exe")]}, 422, "invalid_attachment"),
    "no content": ({"attachments": [{"filename": "a"}]}, 422, "invalid_attachment"),
    "bad base64": ({"attachments": [file(content="%%%")]}, 422, "invalid_attachment"),
    "a local path": ({"attachments": [{"path": "/etc/passwd"}]}, 422, "invalid_attachment"),
    "a path inside": ({"attachments": [{"path": "http://127.0.0.1:1/x"}]}, 422, "invalid_attachment"),
    "half a reply": ({"text": "x", "thread_id": SOME}, 422, "validation_error"),
    "a bad thread": ({"text": "x", "thread_id": "1", "reply_to_email_id": "2"}, 422, "invalid_parameter"),
    "an unknown email": (
        {
            "text": "x",
            "thread_id": SOME,
            "reply_to_email_id": SOME,
        },
        404,
        "not_found",
    ),
}


async def test_what_is_wrong_is_refused_and_nothing_is_stored(inbox: Inbox) -> None:
    draft = await drafted(inbox, **READY)
    for what, (body, status, name) in WRONG.items():
        answer = await inbox.team.post(f"{inbox.url}/drafts", body)
        assert (answer.status_code, answer.json()["name"]) == (status, name), what
        if "thread_id" not in body and body:
            answer = await inbox.team.call("PATCH", f"{inbox.url}/drafts/{draft}", body)
            if what != "only empty fields":
                assert (answer.status_code, answer.json()["name"]) == (status, name), what
    answer = await inbox.team.call("PATCH", f"{inbox.url}/drafts/{draft}", {"other": 1})
    assert answer.status_code == 422
    assert await listed(inbox) == [draft]
    assert (await inbox.counts())[1] == 1


async def test_a_change_replaces_what_it_names(inbox: Inbox) -> None:
    draft = await drafted(inbox, **READY, cc="ola@x.example", attachments=[file()])
    url = f"{inbox.url}/drafts/{draft}"

    async def changed(**fields: Any) -> dict[str, Any]:
        answer = await inbox.team.call("PATCH", url, fields)
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"object": "inbox_draft", "id": draft}
        return await shown(inbox, draft)

    before = await shown(inbox, draft)
    found = await changed(html="<p>Hi</p>")
    assert (found["html"], found["text"]) == ("<p>Hi</p>", None)
    assert found["updated_at"] > before["updated_at"]
    assert (found["to"], found["cc"]) == (["iris@customer.example"], ["ola@x.example"])
    assert found["attachments"] == before["attachments"]
    found = await changed(to=None, cc=None)
    assert (found["to"], found["cc"]) == (None, [])
    assert (await changed(to=[]))["to"] == []
    found = await changed(attachments=[file("a"), file("b" * 300_000)])
    assert [one["size"] for one in found["attachments"]] == [1, 300_000]
    assert (await changed(attachments=None))["attachments"] == []
    found = await changed(subject=None)
    assert found["subject"] is None
    answer = await inbox.team.call("PATCH", url, {"html": None})
    assert answer.status_code == 422, "something must stay"
    assert (await shown(inbox, draft))["html"] == "<p>Hi</p>"


async def test_a_draft_that_was_deleted_is_gone(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        draft = await drafted(inbox, **READY, attachments=[file("b" * 300_000)])
        url = f"{inbox.url}/drafts/{draft}"
        answer = await inbox.team.call("DELETE", url)
        assert answer.json() == {"object": "inbox_draft", "id": draft, "deleted": True}
        for method in ("GET", "DELETE"):
            assert (await inbox.team.call(method, url)).status_code == 404
        assert (await inbox.team.call("PATCH", url, {"text": "x"})).status_code == 404
        assert (await inbox.team.post(f"{url}/send")).status_code == 404
        assert (await inbox.counts())[1] == 0
        assert not list(tmp_path.rglob("drafts/*-*"))


async def test_a_reply_draft_is_addressed_and_there_is_one_for_each_email(inbox: Inbox) -> None:
    thread = await inbox.thread("Refund for order 88")
    email = await thread.received(ORIGINAL)
    first = await a_reply(thread, email)
    assert first.status_code == 201, first.text
    draft = first.json()["id"]
    found = await shown(inbox, draft)
    assert (found["type"], found["to"], found["cc"]) == ("reply", ["iris@customer.example"], [])
    assert (found["thread_id"], found["reply_to_email_id"]) == (str(thread.id), email)
    assert (await inbox.get("/threads")).json()["data"][0]["has_draft"] is True
    second = await a_reply(thread, email, text="ignored", to="x@x.example")
    assert (second.status_code, second.json()) == (200, first.json())
    assert (await shown(inbox, draft))["text"] is None
    third = await a_reply(thread, email, attachments=[file()])
    assert third.status_code == 200
    assert len((await shown(inbox, draft))["attachments"]) == 1
    assert (await inbox.counts())[1] == 1
    other = await a_reply(thread, thread.messages[0], to=[])
    assert (await shown(inbox, other.json()["id"]))["to"] == []
    await inbox.team.call("DELETE", f"{inbox.url}/drafts/{draft}")
    await inbox.team.call("DELETE", f"{inbox.url}/drafts/{other.json()['id']}")
    assert (await inbox.get("/threads")).json()["data"][0]["has_draft"] is False


async def test_two_replies_at_once_are_one_draft(inbox: Inbox) -> None:
    thread = await inbox.thread()
    email = await thread.received(ORIGINAL)
    answers = await asyncio.gather(*[a_reply(thread, email, text=f"{n}") for n in range(6)])
    assert sorted([one.status_code for one in answers]) == [200] * 5 + [201]
    assert len({one.json()["id"] for one in answers}) == 1
    assert (await inbox.counts())[1] == 1


async def test_creating_is_repeated_by_its_key(inbox: Inbox) -> None:
    url = f"{inbox.url}/drafts"
    first = await inbox.team.post(url, READY, idempotency_key="once")
    again = await inbox.team.post(url, READY, idempotency_key="once")
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    other = await inbox.team.post(url, {**READY, "text": "x"}, idempotency_key="once")
    assert (other.status_code, other.json()["name"]) == (409, "invalid_idempotent_request")
    refused = await inbox.team.post(url, {}, idempotency_key="refused")
    assert refused.status_code == 422
    assert (await inbox.team.post(url, READY, idempotency_key="refused")).status_code == 201
    for name in ("help%40harbor.example", "Help@Harbor.Example", str(inbox.id).upper()):
        named = await inbox.team.post(f"/inboxes/{name}/drafts", READY, idempotency_key="once")
        assert (named.status_code, named.content) == (201, first.content), "an inbox has one scope"
    assert (await inbox.counts())[1] == 2


async def test_a_key_is_answered_by_id_when_the_inbox_is_gone(inbox: Inbox) -> None:
    url = f"{inbox.url}/drafts"
    by_address = "/inboxes/help%40harbor.example/drafts"
    first = await inbox.team.post(by_address, READY, idempotency_key="once")
    assert (await inbox.team.call("DELETE", inbox.url)).status_code == 200
    again = await inbox.team.post(url, READY, idempotency_key="once")
    assert (again.status_code, again.content) == (201, first.content)
    gone = await inbox.team.post(by_address, READY, idempotency_key="once")
    assert (gone.status_code, gone.json()["message"]) == (404, "Inbox not found")


async def test_a_key_kept_by_a_release_that_did_not_resolve_addresses_counts(inbox: Inbox) -> None:
    """It kept answers under the path as it was written. Who repeats a request after an upgrade sends once."""
    draft = await drafted(inbox, **READY)
    url = f"/inboxes/Help%40Harbor.Example/drafts/{draft}/send"
    first = await inbox.team.post(url, idempotency_key="once")
    older = "POST /inboxes/{inbox}/drafts/{draft_id}/send help@harbor.example " + draft
    await inbox.team.world.pool.execute("UPDATE idempotency_keys SET scope = $1 WHERE key = 'once'", older)
    again = await inbox.team.post(url, idempotency_key="once")
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["idempotent-replayed"] == "true"


async def test_a_draft_becomes_an_email_in_a_new_thread(inbox: Inbox) -> None:
    draft = await drafted(inbox, **READY, bcc="boss@x.example", attachments=[file(), file("b" * 300_000)])
    answer = await inbox.team.post(f"{inbox.url}/drafts/{draft}/send", {"headers": {"X-Ticket": "88"}})
    assert answer.status_code == 200, answer.text
    sent = answer.json()
    assert list(sent) == ["object", "id", "thread_id", "email_id"]
    assert (sent["object"], sent["id"]) == ("inbox_draft", draft)
    email = await inbox.team.email(sent["email_id"])
    assert (email["from"], email["to"], email["bcc"]) == (
        "help@harbor.example",
        ["iris@customer.example"],
        ["boss@x.example"],
    )
    assert (await inbox.team.get(f"/emails/{draft}")).json() == email, "contract decision 31"
    assert len((await inbox.team.get(f"/emails/{sent['email_id']}/attachments")).json()["data"]) == 2
    found = await shown(inbox, draft)
    assert (found["email_id"], found["thread_id"]) == (sent["email_id"], None)
    for attached, size in zip(found["attachments"], (7, 300_000), strict=True):
        link = (await inbox.get(f"/drafts/{draft}/attachments/{attached['id']}")).json()
        fetched = await inbox.team.http.get(link["download_url"])
        assert len(fetched.content) == size
    assert await listed(inbox) == []
    assert (await inbox.counts()) == (0, 0)
    [thread] = (await inbox.get("/threads?folder=sent")).json()["data"]
    assert thread["id"] == sent["thread_id"]
    assert (thread["subject"], thread["read"], thread["has_attachment"]) == ("Your order", True, True)
    [message] = (await inbox.get(f"/threads/{thread['id']}/emails")).json()["data"]
    assert (message["id"], message["direction"]) == (sent["email_id"], "outbound")
    assert message["text"] == "Hi Iris"
    again = await inbox.team.post(f"{inbox.url}/drafts/{draft}/send")
    assert (again.status_code, again.json()["name"], again.json()["message"]) == (
        409,
        "conflict",
        "This draft was already sent",
    )
    for method, body in (("PATCH", {"text": "x"}), ("DELETE", None)):
        answer = await inbox.team.call(method, f"{inbox.url}/drafts/{draft}", body)
        assert (answer.status_code, answer.json()["name"]) == (409, "conflict")


async def test_sending_is_repeated_by_its_key(inbox: Inbox) -> None:
    draft, other = await drafted(inbox, **READY), await drafted(inbox, **READY)
    url = f"{inbox.url}/drafts/{draft}/send"
    first = await inbox.team.post(url, idempotency_key="once")
    again = await inbox.team.post(url, idempotency_key="once")
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    named = f"/inboxes/help%40harbor.example/drafts/{draft}/send"
    by_address = await inbox.team.post(named, idempotency_key="once")
    assert (by_address.status_code, by_address.content) == (200, first.content)
    another = await inbox.team.post(f"{inbox.url}/drafts/{other}/send", idempotency_key="once")
    assert another.json()["id"] == other, "a key counts for its path"


async def test_of_sends_at_once_exactly_one_sends(inbox: Inbox) -> None:
    draft = await drafted(inbox, **READY)
    url = f"{inbox.url}/drafts/{draft}"
    tasks = [inbox.team.post(f"{url}/send") for _ in range(5)]
    tasks += [inbox.team.call("PATCH", url, {"text": f"{n}"}) for n in range(3)]
    tasks += [inbox.team.call("DELETE", url)]
    answers = await asyncio.gather(*tasks)
    sends = [one.status_code for one in answers[:5]]
    emails = await inbox.team.world.pool.fetchval("SELECT count(*) FROM emails")
    gone = answers[-1].status_code == 200
    assert sends.count(200) == emails <= 1 - gone
    assert {one.status_code for one in answers} <= {200, 404, 409}
    assert all(one.status_code != 404 for one in answers) or gone
    messages = await inbox.team.world.pool.fetchval("SELECT count(*) FROM inbox_messages")
    assert messages == emails
    assert (await inbox.counts())[1] == (0 if gone or emails else 1)


UNREADY = {
    "to": ({"subject": "x", "text": "x"}, "`to`"),
    "an empty to": ({"to": [], "cc": "a@x.example", "subject": "x", "text": "x"}, "`to`"),
    "subject": ({"to": "a@x.example", "text": "x"}, "`subject`"),
    "bodies": ({"to": "a@x.example", "subject": "x"}, "`html`"),
    "said bodies": ({"to": "a@x.example", "subject": "x", "html": " \n ", "text": "\t"}, "`html`"),
}


@pytest.mark.parametrize("what", UNREADY)
async def test_a_draft_that_lacks_something_is_not_sent(database_url: str, tmp_path: Path, what: str) -> None:
    fields, named = UNREADY[what]
    async with inbox_world(database_url, tmp_path) as inbox:
        draft = await drafted(inbox, **fields)
        answer = await inbox.team.post(f"{inbox.url}/drafts/{draft}/send")
        assert (answer.status_code, answer.json()["name"]) == (422, "validation_error")
        assert named in answer.json()["message"]
        assert await listed(inbox) == [draft]


async def test_a_reply_draft_is_sent_in_its_thread(inbox: Inbox) -> None:
    thread = await inbox.thread("Refund for order 88", folder="trash")
    email = await thread.received(ORIGINAL)
    draft = (await a_reply(thread, email, text="Refund issued today.")).json()["id"]
    url = f"{inbox.url}/drafts/{draft}/send"
    answer = await inbox.team.post(url, {"headers": {"Reply-To": "x@x.example"}})
    assert answer.status_code == 422
    sent = (await inbox.team.post(url)).json()
    assert sent["thread_id"] == str(thread.id)
    found = await inbox.team.email(sent["email_id"])
    assert found["subject"] == "Re: Refund for order 88"
    headers = await inbox.team.world.pool.fetchval(HEADERS, found["id"])
    answered = (await thread.get(f"/emails/{email}")).json()["message_id"]
    assert f'["In-Reply-To","{answered}"]' in headers
    assert f'["References","<87@customer.example> {answered}"]' in headers
    assert f'["X-Pillarbox-Inbox","{inbox.id}"]' in headers
    shown_thread = (await thread.get()).json()
    assert shown_thread["folder"] == "inbox", "inboxes.md 8: sent in a thread that is in the trash"
    [item] = (await inbox.get("/threads")).json()["data"]
    assert (item["message_count"], item["has_draft"]) == (3, False)
    assert (await a_reply(thread, email)).status_code == 201, "the next one is a new draft"


async def test_another_team_sees_none_of_it(inbox: Inbox) -> None:
    draft = await drafted(inbox, **READY)
    other = await inbox.team.world.team("Quay")
    for url in (f"{inbox.url}/drafts", f"{inbox.url}/drafts/{draft}", f"/emails/{draft}"):
        assert (await other.get(url)).status_code == 404
    assert (await other.post(f"{inbox.url}/drafts/{draft}/send")).status_code == 404


async def test_a_draft_that_may_not_be_sent_stays_a_draft(database_url: str, tmp_path: Path) -> None:
    """Domain and quota as with POST /emails, behind the draft's own conditions."""
    async with inbox_world(database_url, tmp_path, require_verified_domain="always") as inbox:
        team, draft = inbox.team, await drafted(inbox, **READY)
        url = f"{inbox.url}/drafts/{draft}/send"
        refused = await team.post(url)
        assert (refused.status_code, refused.json()["name"]) == (403, "validation_error")
        await team.domain()
        await team.world.pool.execute("UPDATE teams SET daily_quota = 1 WHERE id = $1", team.id)
        limited = team.using(await team.key())
        assert (await limited.post("/emails", {**READY, "from": "help@harbor.example"})).status_code == 200
        refused = await limited.post(url, idempotency_key="once")
        assert (refused.status_code, refused.json()["name"]) == (429, "daily_quota_exceeded")
        assert await listed(inbox) == [draft]
        assert (await inbox.counts())[1] == 1
        assert (await inbox.get("/threads?folder=sent")).json()["data"] == []
        await team.world.pool.execute("UPDATE teams SET daily_quota = NULL WHERE id = $1", team.id)
        again = team.using(await team.key())
        assert (await again.post(url, idempotency_key="once")).status_code == 200


async def test_suppressed_recipients_are_not_sent_to(inbox: Inbox) -> None:
    await inbox.team.post("/suppressions", {"email": "iris@customer.example"})
    draft = await drafted(inbox, **READY)
    sent = (await inbox.team.post(f"{inbox.url}/drafts/{draft}/send")).json()
    await inbox.team.world.turn()
    assert (await inbox.team.email(sent["email_id"]))["last_event"] == "suppressed"


async def test_a_key_that_only_sends_may_not_send_drafts(inbox: Inbox) -> None:
    draft = await drafted(inbox, **READY)
    sender = inbox.team.using(await inbox.team.key(permission="sending_access"))
    for path in ("drafts", f"drafts/{draft}/send"):
        answer = await sender.post(f"{inbox.url}/{path}", READY)
        assert (answer.status_code, answer.json()["name"]) == (401, "restricted_api_key")
