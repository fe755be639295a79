"""The events of drafts, replies and forwards (inboxes.md section 10, webhooks.md 7.5)."""

from __future__ import annotations

from typing import Any

from kit.inbox_rows import Inbox
from kit.webhooks import hook

KINDS = [
    *("inbox.draft.created", "inbox.draft.updated", "inbox.draft.deleted", "inbox.draft.sent"),
    *("inbox.thread.created", "inbox.email.sent", "inbox.thread.folder.updated"),
]

READY = {"to": "iris@customer.example", "subject": "Your order", "text": "Hi Iris"}

ORIGINAL = (
    b"From: iris@customer.example\r\nSubject: Refund\r\nMessage-ID: <88@customer.example>\r\n\r\nHi\r\n"
)


async def test_the_life_of_a_draft_is_told_in_order(inbox: Inbox) -> None:
    team = inbox.team
    told = await hook(team, *KINDS)
    url = f"{inbox.url}/drafts"
    first = (await team.post(url, READY)).json()["id"]
    await team.call("PATCH", f"{url}/{first}", {"text": "Hello Iris"})
    second = (await team.post(url, READY)).json()["id"]
    await team.call("DELETE", f"{url}/{second}")
    sent = (await team.post(f"{url}/{first}/send")).json()
    assert await told.kinds() == [
        *("inbox.draft.created", "inbox.draft.updated", "inbox.draft.created", "inbox.draft.deleted"),
        *("inbox.draft.sent", "inbox.thread.created", "inbox.email.sent"),
    ]
    assert sent["id"] == first
    instants = [event["created_at"] for event in await told.events()]
    assert instants == sorted(instants), "webhooks.md 4: deliveries begin in this order"
    assert len(set(instants[-3:])) == 1


async def test_a_refused_change_tells_nothing(inbox: Inbox) -> None:
    team = inbox.team
    told = await hook(team, *KINDS)
    url = f"{inbox.url}/drafts"
    await team.post(url, {})
    draft = (await team.post(url, {"text": "x"})).json()["id"]
    for body in ({}, {"text": None}):
        assert (await team.call("PATCH", f"{url}/{draft}", body)).status_code == 422
    assert (await team.post(f"{url}/{draft}/send")).status_code == 422
    assert await told.kinds() == ["inbox.draft.created"]


async def test_an_existing_reply_draft_is_told_of_when_its_files_change(inbox: Inbox) -> None:
    team = inbox.team
    told = await hook(team, *KINDS)
    thread = await inbox.thread()
    email = await thread.received(ORIGINAL)
    body: dict[str, Any] = {"thread_id": str(thread.id), "reply_to_email_id": email, "text": "x"}
    url = f"{inbox.url}/drafts"
    await team.post(url, body)
    await team.post(url, body)
    await team.post(url, {**body, "attachments": []})
    assert await told.kinds() == ["inbox.draft.created"]
    await team.post(url, {**body, "attachments": [{"content": "aGk=", "filename": "a.txt"}]})
    assert await told.kinds() == ["inbox.draft.created", "inbox.draft.updated"]


async def test_an_answer_in_the_trash_moves_its_thread_and_tells_it_first(inbox: Inbox) -> None:
    team = inbox.team
    thread = await inbox.thread("Refund", folder="trash")
    email = await thread.received(ORIGINAL)
    told = await hook(team, *KINDS)
    await team.post(f"{thread.url}/emails/{email}/reply", {"text": "x"})
    await team.post(f"{thread.url}/emails/{email}/forward", {"to": "ada@quay.example"})
    assert await told.kinds() == [
        "inbox.thread.folder.updated",
        "inbox.email.sent",
        "inbox.email.sent",
    ]
