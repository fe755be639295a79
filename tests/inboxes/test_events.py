"""What webhooks are told of inboxes (webhooks.md 7.5)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from kit.inbox_rows import Inbox, Thread, an_inbox
from kit.inboxes import create, inbox_team
from kit.webhooks import Hook, hook
from pillarbox.inboxes import event_data, events
from pillarbox.inboxes.events import DraftOfEvent, InboxOfEvent, ThreadLabel, ThreadRef
from pillarbox.inboxes.folders import ThreadFolder
from pillarbox.kernel.postgres.database import transaction
from pillarbox.webhooks.kinds import KINDS
from pillarbox.webhooks.publish import Publisher, Reference
from pillarbox.webhooks.samples import SAMPLES

KINDS_OF_INBOXES = [kind for kind in KINDS if kind.startswith("inbox.")]
AT = datetime(2026, 10, 2, 9, 15, 4, 310999, UTC)

MAIL = (
    b"From: iris@customer.example\r\nSubject: Refund\r\n"
    b"Content-Disposition: attachment; filename=invoice.txt\r\n\r\nHello\r\n"
)

INSERT_DRAFT = """
    INSERT INTO inbox_drafts (team_id, id, inbox_id, thread_id, reply_to_email_id, to_list, cc_list, bcc_list,
                              subject, html, text, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, '["iris@customer.example"]', '[]', '[]', 'Your order', '<p>Hi</p>', 'Hi', $6,
            $6)
"""

INSERT_FILE = """
    INSERT INTO inbox_draft_attachments (team_id, id, draft_id, position, filename, content_type, size, data)
    VALUES ($1, $2, $3, 0, 'plan.pdf', 'application/pdf', 4, 'plan')
"""

MESSAGE = (
    *("id", "direction", "from", "to", "cc", "bcc", "reply_to", "subject", "message_id", "attachments"),
    *("read", "received_at"),
)
DRAFT = (
    *("object", "id", "type", "to", "cc", "bcc", "subject", "thread_id", "reply_to_email_id", "email_id"),
    *("created_at", "updated_at", "attachments"),
)
THREAD = ("object", "id", "subject", "folder", "labels", "read")


def test_there_are_fourteen_and_each_has_a_shape() -> None:
    assert len(KINDS_OF_INBOXES) == 14
    assert set(event_data.SHAPES) == set(KINDS_OF_INBOXES)


def test_the_samples_are_of_these_shapes() -> None:
    for kind, shape in event_data.SHAPES.items():
        sample = msgspec.json.encode(SAMPLES[kind])
        read = msgspec.json.decode(sample, type=shape)
        assert msgspec.json.decode(msgspec.json.encode(read)) == msgspec.json.decode(sample), kind


async def told(hooked: Hook, inbox: Inbox, *references: Reference) -> list[dict[str, Any]]:
    """The bodies of these events."""
    before = len(await hooked.events())
    async with transaction(inbox.team.world.pool) as conn:
        await inbox.team.world.app.need(Publisher).refer(conn, references)
    return (await hooked.payloads())[before:]


async def a_draft(inbox: Inbox, thread: Thread | None = None) -> UUID:
    draft_id = inbox.new_id()
    place = (None, None) if thread is None else (thread.id, thread.messages[0])
    await inbox.team.db.run(INSERT_DRAFT, draft_id, inbox.id, *place, AT)
    await inbox.team.db.run(INSERT_FILE, inbox.new_id(), draft_id)
    return draft_id


async def test_an_inbox_is_shown_whole(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path) as team:
        hooked = await hook(team, *KINDS_OF_INBOXES)
        inbox_id = await create(team, from_name="Mina")
        shown = (await team.get(f"/inboxes/{inbox_id}")).json()
        [made] = await hooked.payloads()
        assert made["type"] == "inbox.created"
        assert list(made["data"].items()) == [("source", "api"), ("inbox_id", inbox_id), ("inbox", shown)]
        assert list(made["data"]["inbox"]) == list(shown)
        await team.call("PATCH", f"/inboxes/{inbox_id}", {"name": "Desk"})
        # Both bodies are made now: each shows the inbox as it is, and then it is frozen.
        await team.call("PATCH", f"/inboxes/{inbox_id}", {"name": "Help"})
        _, first, second = await hooked.payloads()
        assert [one["data"]["inbox"]["name"] for one in (first, second)] == ["Help", "Help"]
        assert (await hooked.payloads())[0] == made
        await team.call("DELETE", f"/inboxes/{inbox_id}")
        gone = (await hooked.payloads())[-1]
        assert (gone["type"], gone["data"]) == ("inbox.deleted", {"source": "api", "inbox_id": inbox_id})


async def test_of_an_inbox_that_is_gone_nothing_is_shown(inbox: Inbox) -> None:
    hooked = await hook(inbox.team, *KINDS_OF_INBOXES)
    thread = await inbox.thread()
    await inbox.team.call("DELETE", inbox.url)
    ref = ThreadRef(inbox.team.id, inbox.id, thread.id)
    place = (inbox.id, thread.id, thread.messages[0])
    made = await told(
        hooked,
        inbox,
        events.created(InboxOfEvent(inbox.team.id, inbox.id), AT),
        events.folder_updated(ref, AT, ThreadFolder.INBOX, ThreadFolder.ARCHIVE),
        events.email_received(inbox.team.id, AT, *place),
    )
    kinds = ("inbox.created", "inbox.thread.folder.updated", "inbox.email.received")
    found = {event["type"]: event["data"] for event in made if event["type"] in kinds}
    named = {"inbox_id": str(inbox.id), "thread_id": str(thread.id)}
    assert list(found["inbox.created"]) == ["source", "inbox_id"]
    moved = {"source": "api", **named, "from": "inbox", "to": "archive"}
    assert found["inbox.thread.folder.updated"] == moved
    assert found["inbox.email.received"] == {
        "source": "system",
        **named,
        "email_id": str(thread.messages[0]),
    }


async def test_a_message_is_shown_with_its_thread(inbox: Inbox) -> None:
    thread = await inbox.thread()
    received = await thread.received(MAIL)
    attached = [{"content": "aGk=", "filename": "plan.txt"}]
    sent = await thread.sent(attachments=attached, now=2)
    hooked = await hook(inbox.team, *KINDS_OF_INBOXES)
    place = (inbox.team.id, AT, inbox.id, thread.id)
    made = await told(
        hooked,
        inbox,
        events.thread_created(*place, UUID(received)),
        events.email_received(*place, UUID(received)),
        events.email_sent(*place, UUID(sent)),
    )
    assert [event["type"] for event in made] == [
        "inbox.thread.created",
        "inbox.email.received",
        "inbox.email.sent",
    ]
    assert {event["created_at"] for event in made} == {"2026-10-02T09:15:04.310Z"}
    first, second, third = (event["data"] for event in made)
    assert first == second
    assert list(first) == ["source", "inbox_id", "thread_id", "email_id", "thread", "email"]
    assert first["source"] == third["source"] == "system"
    assert tuple(first["thread"]) == THREAD
    assert first["thread"] == (await thread.get()).json()
    for data, email_id, direction in ((first, received, "inbound"), (third, sent, "outbound")):
        email = data["email"]
        assert tuple(email) == MESSAGE
        assert (email["id"], email["direction"]) == (email_id, direction)
        whole = (await thread.get(f"/emails/{email_id}")).json()
        assert email == {name: whole[name] for name in MESSAGE}
        [file] = email["attachments"]
        assert list(file) == ["id", "filename", "size"]


async def test_a_message_of_two_inboxes_is_shown_as_each_has_it(inbox: Inbox) -> None:
    other = await an_inbox(inbox.team, "desk")
    hooked = await hook(inbox.team, *KINDS_OF_INBOXES)
    one, two = await inbox.thread(), await other.thread("Berth")
    update = "UPDATE inbox_messages SET id = $3 WHERE team_id = $1 AND id = $2"
    await inbox.team.db.run(update, two.messages[0], one.messages[0])
    made = await told(
        hooked,
        inbox,
        events.email_received(inbox.team.id, AT, inbox.id, one.id, one.messages[0]),
        events.email_received(inbox.team.id, AT, other.id, two.id, one.messages[0]),
    )
    assert [event["data"]["email"]["subject"] for event in made] == ["Refund", "Berth"]


async def test_what_happens_to_a_thread(inbox: Inbox) -> None:
    thread = await inbox.thread()
    label_id = await inbox.label("Late")
    label = ThreadLabel(id=UUID(label_id), name="Late", color="#E93D82")
    shown = {"id": label_id, "name": "Late", "color": "#E93D82"}
    hooked = await hook(inbox.team, *KINDS_OF_INBOXES)
    ref = ThreadRef(inbox.team.id, inbox.id, thread.id, "dashboard")
    made = await told(
        hooked,
        inbox,
        events.folder_updated(ref, AT, ThreadFolder.SENT, ThreadFolder.INBOX),
        events.assigned(ref, AT, "mina@harbor.example", None, "ola@harbor.example"),
        events.assigned(ref, AT, None, "mina@harbor.example"),
        events.labels_updated(ref, AT, added=label),
        events.labels_updated(ref, AT, removed=label),
    )
    begin = {"source": "dashboard", "inbox_id": str(inbox.id), "thread_id": str(thread.id)}
    end = {"thread": (await thread.get()).json()}
    mina, ola = "mina@harbor.example", "ola@harbor.example"
    assigned = {"assignee_email": mina, "assigned_by_email": ola, "previous_assignee_email": None}
    assert [(event["type"], list(event["data"].items())) for event in made] == [
        ("inbox.thread.folder.updated", list({**begin, "from": "sent", "to": "inbox", **end}.items())),
        ("inbox.thread.assigned", list({**begin, **assigned, **end}.items())),
        ("inbox.thread.unassigned", list({**begin, "previous_assignee_email": mina, **end}.items())),
        ("inbox.thread.labels.updated", list({**begin, "added": [shown], "removed": [], **end}.items())),
        ("inbox.thread.labels.updated", list({**begin, "added": [], "removed": [shown], **end}.items())),
    ]


async def test_what_happens_to_a_draft(inbox: Inbox) -> None:
    thread = await inbox.thread()
    alone, reply = await a_draft(inbox), await a_draft(inbox, thread)
    hooked = await hook(inbox.team, *KINDS_OF_INBOXES)
    of_alone = DraftOfEvent(inbox.team.id, inbox.id, alone)
    of_reply = DraftOfEvent(
        team_id=inbox.team.id, inbox_id=inbox.id, draft_id=reply, thread_id=thread.id, source="agent"
    )
    made = await told(
        hooked,
        inbox,
        events.draft_created(of_alone, AT),
        events.draft_created(of_reply, AT),
        events.draft_updated(of_reply, AT),
        events.draft_deleted(of_reply, AT),
        events.draft_deleted(of_alone, AT),
        events.draft_sent(of_reply, AT, thread.messages[0]),
    )
    data = [event["data"] for event in made]
    assert list(data[0]) == ["source", "inbox_id", "draft_id", "draft"]
    assert tuple(data[0]["draft"]) == DRAFT
    assert (data[0]["draft"]["type"], data[0]["draft"]["to"]) == ("standalone", ["iris@customer.example"])
    assert [list(file) for file in data[0]["draft"]["attachments"]] == [
        ["id", "filename", "content_type", "size"]
    ]
    for one in data[1:3]:
        assert list(one) == ["source", "inbox_id", "thread_id", "draft_id", "thread", "draft"]
        assert (one["source"], one["draft"]["type"]) == ("agent", "reply")
        assert one["draft"]["reply_to_email_id"] == str(thread.messages[0])
    assert list(data[3]) == ["source", "inbox_id", "thread_id", "draft_id", "thread"]
    assert list(data[4]) == ["source", "inbox_id", "draft_id"]
    assert list(data[5]) == [
        *("source", "inbox_id", "thread_id", "email_id", "draft_id", "thread", "email", "draft")
    ]


async def test_bodies_that_are_made_at_once_are_the_same(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path) as team:
        first, second = await hook(team, "inbox.created"), await hook(team, "inbox.created")
        await create(team)
        one, two = await asyncio.gather(first.payloads(), second.payloads())
        assert one == two
