"""Messages come into threads under the lock of their inbox, in the transaction of their caller."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from kit.inbox_rows import BEGAN, Inbox, an_inbox
from kit.world import World
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.threading.join import join
from pillarbox.inboxes.threading.new_messages import JoinedThread, NewMessage
from pillarbox.inboxes.threading.queries import MOST_SAME
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.mail.message.threading import id_key
from pillarbox.webhooks.publish import Publisher

THREADS = """
    SELECT id, subject, folder, messages, inbound, unread, has_attachment, last_message_id, received_at,
           purge_at
      FROM inbox_threads WHERE team_id = $1 AND inbox_id = $2 ORDER BY id
"""

MARKED = "UPDATE inbox_threads SET marks = marks + 1, marked_read = true WHERE team_id = $1"


def message(inbox: Inbox, at: float = 0, **fields: Any) -> NewMessage:
    """A message that came in so many minutes after the beginning, unless `fields` say otherwise."""
    wanted: dict[str, Any] = {
        "id": inbox.new_id(),
        "received_at": BEGAN + timedelta(minutes=at),
        "is_inbound": True,
        "sender": "Iris <iris@customer.example>",
        "sender_key": "iris@customer.example",
        "to_list": '["help@harbor.example"]',
        "subject": "Refund",
        "message_id": None,
        "searched": "",
    }
    return NewMessage(team_id=inbox.team.id, inbox_id=inbox.id, **(wanted | fields))


async def joined(inbox: Inbox, *messages: NewMessage) -> list[JoinedThread]:
    app = inbox.team.world.app
    async with transaction(inbox.team.world.pool) as conn:
        await lock(conn, [(inbox.team.id, inbox.id)])
        at = inbox.team.world.clock.now()
        return await join(conn, app.need(Publisher), app.need(Ids), at, messages)


async def threads(inbox: Inbox) -> list[dict[str, Any]]:
    rows = await inbox.team.world.pool.fetch(THREADS, inbox.team.id, inbox.id)
    return [dict(row) for row in rows]


async def test_an_answer_joins_by_the_id_that_it_names(running: World) -> None:
    """INB-06, inboxes.md 9.4: the first known id of In-Reply-To, then References from the last back,
    decides."""
    inbox = await an_inbox(await running.team())
    [first] = await joined(inbox, message(inbox, message_id="<a@customer.example>"))
    [other] = await joined(inbox, message(inbox, 1, message_id="<b@customer.example>"))
    assert first.thread_id != other.thread_id
    answer = message(
        inbox,
        2,
        subject="Something else",
        earlier_ids=("gone@x", "a@customer.example", "b@customer.example"),
        names_earlier=True,
        attachments=2,
    )
    [found] = await joined(inbox, answer)
    assert found == JoinedThread(first.thread_id, answer.id, is_stored=True)
    one, two = await threads(inbox)
    assert (one["messages"], one["inbound"], one["unread"], one["has_attachment"]) == (2, 2, 2, True)
    assert (one["last_message_id"], one["received_at"]) == (answer.id, answer.received_at)
    assert (one["subject"], two["messages"]) == ("Refund", 1)
    assert await inbox.counts() == (2, 0)


@pytest.mark.parametrize("is_spam", [False, True])
async def test_an_answer_to_our_mail_does_not_follow_who_took_its_id(
    running: World, *, is_spam: bool
) -> None:
    """inboxes.md 9.4: whoever has our mail may send another with its Message-ID, or a list sends it on."""
    inbox = await an_inbox(await running.team())
    ours = message(inbox, message_id="<a@harbor.example>", is_inbound=False, sender_key=inbox.address)
    [sent] = await joined(inbox, ours)
    taken = message(inbox, 1, message_id="<a@harbor.example>", subject="Other", is_spam=is_spam)
    [other] = await joined(inbox, taken)
    assert other.thread_id != sent.thread_id
    named = {"earlier_ids": ("a@harbor.example",), "names_earlier": True}
    [answer] = await joined(inbox, message(inbox, 2, **named))
    assert answer.thread_id == sent.thread_id


@pytest.mark.parametrize("is_spam", [False, True])
async def test_an_answer_is_not_hidden_behind_spam_with_the_id_that_it_names(
    running: World, *, is_spam: bool
) -> None:
    """inboxes.md 9.7: spam with the Message-ID of another mail takes no answers to that along."""
    inbox = await an_inbox(await running.team())
    [first] = await joined(inbox, message(inbox, message_id="<a@customer.example>"))
    copied = message(inbox, 1, message_id="<a@customer.example>", subject="Other", is_spam=is_spam)
    [copy] = await joined(inbox, copied)
    named = {"earlier_ids": ("a@customer.example",), "names_earlier": True}
    [answer] = await joined(inbox, message(inbox, 2, **named))
    assert copy.thread_id != first.thread_id
    assert answer.thread_id == first.thread_id, "the first message with an id keeps it"


async def test_many_mails_with_one_id_push_the_first_out_of_nothing(running: World) -> None:
    """The messages with one id that are looked at are bounded; our own is among them."""
    inbox = await an_inbox(await running.team())
    ours = message(inbox, message_id="<a@harbor.example>", is_inbound=False, sender_key=inbox.address)
    [sent] = await joined(inbox, ours)
    for part in range(3):
        taken = [
            message(inbox, 1 + n, message_id="<a@harbor.example>", body_key=bytes([part, n] * 8))
            for n in range(MOST_SAME)
        ]
        await joined(inbox, *taken)
    named = {"earlier_ids": ("a@harbor.example",), "names_earlier": True}
    [answer] = await joined(inbox, message(inbox, 90, **named))
    assert answer.thread_id == sent.thread_id
    returned = message(inbox, 91, message_id="<a@harbor.example>", sender_key=inbox.address)
    [found] = await joined(inbox, returned)
    assert found == JoinedThread(sent.thread_id, ours.id, is_stored=False)


async def test_a_copy_that_is_no_spam_is_not_hidden_behind_one_that_is(running: World) -> None:
    """inboxes.md 9.3: a forwarder breaks what shows the author, and the same mail comes directly as well."""
    inbox = await an_inbox(await running.team())
    named = {"message_id": "<a@customer.example>", "body_key": b"0" * 16}
    found = [
        (await joined(inbox, message(inbox, at, **named, is_spam=is_spam)))[0]
        for at, is_spam in enumerate([True, True, False, False, True])
    ]
    assert [one.is_stored for one in found] == [True, False, True, False, False]
    assert [row["folder"] for row in await threads(inbox)] == ["spam", "inbox"]
    assert await inbox.counts() == (1, 0)


async def test_messages_of_one_commit_may_answer_each_other(running: World) -> None:
    inbox = await an_inbox(await running.team())
    chain = [
        message(inbox, n, message_id=f"<{n}@x>", earlier_ids=(f"{n - 1}@x",), names_earlier=True)
        for n in range(5)
    ]
    found = await joined(inbox, *chain, message(inbox, 9, subject="Re: Refund"))
    assert len({one.thread_id for one in found}) == 1
    [thread] = await threads(inbox)
    assert (thread["messages"], thread["unread"]) == (6, 6)
    assert await inbox.counts() == (1, 0)


@pytest.mark.parametrize(
    ("fields", "joins"),
    [
        ({}, True),
        ({"subject": "AW: [desk] refund"}, True),
        ({"subject": "Refund"}, False),
        ({"sender_key": "ola@customer.example"}, False),
        ({"names_earlier": True}, False),
        ({"at": 31 * 24 * 60}, False),
        ({"is_spam": True}, False),
    ],
)
async def test_the_subject_decides_only_where_no_id_is_named(
    running: World, fields: dict[str, Any], *, joins: bool
) -> None:
    """INB-06, inboxes.md 9.5: prefix, equal subject, somebody who takes part, active within 30 days."""
    inbox = await an_inbox(await running.team())
    [first] = await joined(inbox, message(inbox))
    [found] = await joined(inbox, message(inbox, **({"at": 5, "subject": "Re: Refund"} | fields)))
    assert (found.thread_id == first.thread_id) is joins


@pytest.mark.parametrize("people", ["to_list", "cc_list"])
async def test_who_was_written_to_takes_part(running: World, people: str) -> None:
    inbox = await an_inbox(await running.team())
    sent = {"is_inbound": False, "sender_key": inbox.address, people: '["Ola <OLA@customer.example>"]'}
    [first] = await joined(inbox, message(inbox, **sent))
    answer = message(inbox, 5, subject="Re: Refund", sender_key="ola@customer.example")
    [found] = await joined(inbox, answer)
    assert found.thread_id == first.thread_id
    [thread] = await threads(inbox)
    assert thread["folder"] == "inbox"


@pytest.mark.parametrize("folder", ["archive", "sent", "trash", "inbox", "spam"])
async def test_new_mail_brings_a_thread_back_into_the_inbox(running: World, folder: str) -> None:
    """inboxes.md 8: archive, sent and trash -> inbox with the deadline cleared; inbox and spam stay."""
    inbox = await an_inbox(await running.team())
    thread = await inbox.thread(folder=folder)
    query = "UPDATE inbox_messages SET message_key = $2, message_id = '<a@x>' WHERE team_id = $1"
    await running.pool.execute(query, inbox.team.id, id_key("<a@x>"))
    await joined(inbox, message(inbox, 5, earlier_ids=("a@x",), names_earlier=True))
    [row] = await threads(inbox)
    assert row["id"] == thread.id
    assert row["folder"] == ("spam" if folder == "spam" else "inbox")
    assert row["purge_at"] is None
    assert (await inbox.counts())[0] == (0 if folder == "spam" else 1)


async def test_spam_joins_spam_alone(running: World) -> None:
    """inboxes.md 9.7."""
    inbox = await an_inbox(await running.team())
    await joined(inbox, message(inbox, message_id="<a@x>"))
    named = {"earlier_ids": ("a@x",), "names_earlier": True, "is_spam": True}
    [bad] = await joined(inbox, message(inbox, 1, message_id="<b@x>", **named))
    [worse] = await joined(inbox, message(inbox, 2, **(named | {"earlier_ids": ("b@x",)})))
    assert bad.thread_id == worse.thread_id
    assert [row["folder"] for row in await threads(inbox)] == ["inbox", "spam"]
    assert await inbox.counts() == (1, 0)


async def test_the_same_message_again_is_not_stored(running: World) -> None:
    """inboxes.md 9.3: the same Message-ID and the same body."""
    inbox = await an_inbox(await running.team())
    first = message(inbox, message_id="<a@x>", body_key=b"1")
    same = message(inbox, 1, message_id="<a@x>", body_key=b"1")
    other = message(inbox, 2, message_id="<a@x>", body_key=b"2")
    found = await joined(inbox, first, same, other)
    assert [one.is_stored for one in found] == [True, False, True]
    [again] = await joined(inbox, message(inbox, 3, message_id="<a@x>", body_key=b"2"))
    assert (again.message_id, again.is_stored) == (other.id, False)


async def test_what_an_inbox_sends_to_itself_is_one_message_that_came_in(running: World) -> None:
    """inboxes.md 9.3: the row becomes inbound and unread, its thread comes into the inbox. Somebody else who
    uses the id begins a thread."""
    inbox = await an_inbox(await running.team())
    sent = message(inbox, is_inbound=False, sender_key=inbox.address, message_id="<a@harbor.example>")
    [out] = await joined(inbox, sent)
    [thread] = await threads(inbox)
    assert (thread["folder"], thread["inbound"], thread["unread"]) == ("sent", 0, 0)
    await inbox.team.db.run(MARKED)
    back = {"message_id": "<a@harbor.example>", "body_key": b"1"}
    [stranger] = await joined(inbox, message(inbox, 1, **back))
    assert stranger.is_stored
    for _ in range(2):
        [found] = await joined(inbox, message(inbox, 2, sender_key=inbox.address, **back))
        assert found == JoinedThread(out.thread_id, sent.id, is_stored=False)
    first, _ = await threads(inbox)
    assert (first["folder"], first["inbound"], first["unread"]) == ("inbox", 1, 1)
    [email] = (await inbox.get(f"/threads/{out.thread_id}/emails")).json()["data"]
    assert email["read"] is False
    assert await inbox.counts() == (2, 0)


async def test_an_answer_that_is_sent_joins_the_thread_it_names(running: World) -> None:
    """inboxes.md 8: out of the trash to the inbox, or to sent where nothing came in."""
    inbox = await an_inbox(await running.team())
    came = await inbox.thread(folder="trash")
    went = await inbox.thread(folder="trash", direction="outbound")
    out = {"is_inbound": False, "sender_key": inbox.address}
    for thread in (came, went):
        await joined(inbox, message(inbox, 5, thread_id=thread.id, **out))
    assert [row["folder"] for row in await threads(inbox)] == ["inbox", "sent"]
    with pytest.raises(NotFound):
        await joined(inbox, message(inbox, 6, thread_id=inbox.new_id(), **out))
    assert len(await threads(inbox)) == 2


async def test_two_answers_at_the_same_moment_make_one_thread(running: World) -> None:
    """inboxes.md 9.10."""
    inbox = await an_inbox(await running.team())
    named = {"earlier_ids": ("a@x",), "names_earlier": True}
    first = message(inbox, message_id="<a@x>")
    await joined(inbox, first)
    found = await asyncio.gather(
        *[joined(inbox, message(inbox, n, message_id=f"<{n}@x>", **named)) for n in range(1, 9)]
    )
    assert len({one.thread_id for [one] in found}) == 1
    [thread] = await threads(inbox)
    assert (thread["messages"], thread["unread"]) == (9, 9)
    assert await inbox.counts() == (1, 0)
