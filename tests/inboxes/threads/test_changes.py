"""Threads are read, moved, labelled and assigned (inboxes.md 5.3 to 5.7, section 8)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kit.inbox_rows import Inbox, Thread, an_inbox
from kit.webhook_events import subscribe
from pillarbox.inboxes.folders import KEPT_IN_TRASH
from pillarbox.webhooks.kinds import KINDS

NOBODY = "00000000-0000-4000-8000-000000000000"

EVENTS = """
    SELECT kind, detail FROM webhook_deliveries WHERE team_id = $1 ORDER BY event_id
"""

PURGE_AT = """
    SELECT purge_at FROM inbox_threads WHERE team_id = $1 AND id = $2
"""

LABEL_PLACES = """
    SELECT count(*)
      FROM inbox_thread_labels l
      JOIN inbox_threads t ON t.team_id = l.team_id AND t.id = l.thread_id
     WHERE l.team_id = $1 AND l.thread_id = $2
       AND l.list_class = t.list_class AND l.received_at = t.received_at
"""


async def told(inbox: Inbox) -> list[tuple[str, dict[str, Any]]]:
    """The events so far, without what all of them have."""
    found = []
    for row in await inbox.team.world.pool.fetch(EVENTS, inbox.team.id):
        detail = json.loads(row["detail"])
        assert detail.pop("inbox_id") == str(inbox.id)
        detail.pop("thread_id")
        found.append((row["kind"].removeprefix("inbox.thread."), detail))
    return found


def summary(thread: Thread, folder: str = "inbox", *, read: bool = False, **fields: Any) -> dict[str, Any]:
    found = {"object": "inbox_thread", "id": str(thread.id), "subject": "Refund", "folder": folder}
    return {**found, "labels": [], "read": read, **fields}


async def test_a_thread_is_shown_and_stays_unread(inbox: Inbox) -> None:
    thread = await inbox.thread()
    answer = await thread.get()
    assert answer.json() == summary(thread)
    assert list(answer.json()) == ["object", "id", "subject", "folder", "labels", "read"]
    assert (await thread.get()).json()["read"] is False
    other = await an_inbox(inbox.team, "sales")
    assert (await other.get(f"/threads/{thread.id}")).json()["message"] == "Thread not found"
    assert (await inbox.get("/threads/x")).json() == {
        "statusCode": 422,
        "message": "The `thread_id` must be a valid UUID.",
        "name": "invalid_parameter",
    }


async def test_read_folder_and_label_in_one_request(inbox: Inbox) -> None:
    await subscribe(inbox.team, list(KINDS))
    label, thread = await inbox.label("Refunds"), await inbox.thread()
    wanted = {"read": True, "folder": "archive", "label_id": label}
    shown = {"id": label, "name": "Refunds", "color": "#E93D82"}
    expected = summary(thread, "archive", read=True, labels=[shown])
    for _ in range(2):
        assert (await thread.patch(**wanted)).json() == expected
    assert await inbox.counts() == (0, 0)
    assert await told(inbox) == [
        ("folder.updated", {"from": "inbox", "to": "archive"}),
        ("labels.updated", {"added": [shown]}),
    ]


async def test_a_bad_label_changes_nothing(inbox: Inbox) -> None:
    await subscribe(inbox.team, list(KINDS))
    thread, other = await inbox.thread(), await an_inbox(inbox.team, "sales")
    for label in (NOBODY, await other.label("Refunds")):
        answer = await thread.patch(read=True, folder="archive", label_id=label)
        assert (answer.status_code, answer.json()["message"]) == (404, "Label not found")
    assert (await thread.get()).json() == summary(thread)
    assert await inbox.counts() == (1, 0)
    assert await told(inbox) == []


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({}, "validation_error"),
        ({"unknown": 1}, "validation_error"),
        ({"read": None}, "validation_error"),
        ({"read": "true"}, "validation_error"),
        ({"read": 1}, "validation_error"),
        ({"folder": None}, "validation_error"),
        ({"folder": "sent"}, "validation_error"),
        ({"folder": "Inbox"}, "validation_error"),
        ({"label_id": None}, "invalid_parameter"),
        ({"label_id": "x"}, "invalid_parameter"),
    ],
)
async def test_a_change_that_is_none_is_refused(inbox: Inbox, body: dict[str, Any], name: str) -> None:
    thread = await inbox.thread()
    answer = await thread.patch(**body)
    assert (answer.status_code, answer.json()["name"]) == (422, name), answer.text


async def test_marking_counts_threads_of_the_folder_inbox_alone(inbox: Inbox) -> None:
    thread, archived = await inbox.thread(), await inbox.thread(folder="archive")
    await thread.message("inbound")
    assert await inbox.counts() == (1, 0)
    await thread.patch(read=True)
    assert await inbox.counts() == (0, 0)
    await archived.patch(read=True)
    assert await inbox.counts() == (0, 0)
    await archived.patch(read=False)
    assert await inbox.counts() == (0, 0)
    await archived.patch(folder="inbox")
    assert await inbox.counts() == (1, 0)
    await thread.patch(read=False)
    assert await inbox.counts() == (2, 0)
    await thread.patch(folder="spam")
    assert await inbox.counts() == (1, 0)
    emails = (await thread.get("/emails")).json()["data"]
    assert [email["read"] for email in emails] == [False, False]


async def test_what_was_only_sent_stays_read(inbox: Inbox) -> None:
    thread = await inbox.thread(folder="sent", direction="outbound")
    assert (await thread.patch(read=False)).json()["read"] is True
    assert (await thread.patch(folder="inbox")).json()["folder"] == "inbox"


async def test_deleting_twice_keeps_the_deadline_and_bringing_back_clears_it(inbox: Inbox) -> None:
    await subscribe(inbox.team, list(KINDS))
    thread, db, clock = await inbox.thread(), inbox.team.db, inbox.team.world.clock
    before = clock.now()
    answers = [(await thread.delete()).json() for _ in range(2)]
    deadline = await db.value(PURGE_AT, thread.id)
    assert before + KEPT_IN_TRASH <= deadline <= clock.now() + KEPT_IN_TRASH
    assert answers == [
        {"object": "inbox_thread", "id": str(thread.id), "deleted": deleted} for deleted in (True, False)
    ]
    await thread.patch(folder="trash")
    assert await db.value(PURGE_AT, thread.id) == deadline
    assert (await thread.patch(folder="inbox")).json()["folder"] == "inbox"
    assert await db.value(PURGE_AT, thread.id) is None
    assert await told(inbox) == [
        ("folder.updated", {"from": "inbox", "to": "trash"}),
        ("folder.updated", {"from": "trash", "to": "inbox"}),
    ]


async def test_labels_are_added_set_and_taken_off(inbox: Inbox) -> None:
    await subscribe(inbox.team, list(KINDS))
    thread = await inbox.thread(folder="trash")
    first, second, third = [await inbox.label(name) for name in ("First", "Second", "Third")]

    async def names(answer: Any) -> list[str]:
        assert answer.status_code == 200, answer.text
        assert list(answer.json()) == ["object", "data"]
        return [label["name"] for label in answer.json()["data"]]

    post = f"{thread.url}/labels"
    assert await names(await inbox.team.post(post, {"labels": [second, second]})) == ["Second"]
    assert await names(await inbox.team.post(post, {"labels": [first, second]})) == ["First", "Second"]
    assert await names(await thread.put_labels([third, first])) == ["First", "Third"]
    assert await names(await thread.delete(f"/labels/{second}")) == ["First", "Third"]
    assert await names(await thread.delete(f"/labels/{first}")) == ["Third"]
    assert await names(await thread.put_labels([])) == []
    changed = [
        (kind, [(how, detail[how][0]["name"]) for how in ("added", "removed") if how in detail])
        for kind, detail in await told(inbox)
    ]
    assert {kind for kind, _ in changed} == {"labels.updated"}
    assert [one for _, one in changed] == [
        [("added", "Second")],
        [("added", "First")],
        [("added", "Third")],
        [("removed", "Second")],
        [("removed", "First")],
        [("removed", "Third")],
    ]


async def test_one_foreign_label_among_a_hundred_leaves_the_old_ones(inbox: Inbox) -> None:
    thread = await inbox.thread()
    labels = [await inbox.label(f"label {number:02}") for number in range(99)]
    await thread.put_labels(labels[:1])
    foreign = await (await an_inbox(inbox.team, "sales")).label("Refunds")
    for bad in (foreign, NOBODY, "x", ""):
        answer = await thread.put_labels([*labels, bad])
        assert (answer.status_code, answer.json()["message"]) == (404, "Label not found"), bad
    assert [one["id"] for one in (await thread.get()).json()["labels"]] == labels[:1]
    assert len((await thread.put_labels(labels)).json()["data"]) == 99


@pytest.mark.parametrize(
    ("method", "body", "status"),
    [
        ("PUT", {}, 422),
        ("PUT", {"labels": None}, 422),
        ("PUT", {"labels": NOBODY}, 422),
        ("PUT", {"labels": [1]}, 422),
        ("PUT", {"labels": [NOBODY] * 101}, 422),
        ("PUT", {"labels": [NOBODY] * 100}, 404),
        ("PUT", {"labels": []}, 200),
        ("POST", {}, 422),
        ("POST", {"labels": []}, 422),
        ("POST", {"labels": [None]}, 422),
        ("POST", {"labels": [NOBODY] * 11}, 422),
        ("POST", {"labels": [NOBODY] * 10}, 404),
    ],
)
async def test_lists_of_labels_have_limits(inbox: Inbox, method: str, body: Any, status: int) -> None:
    thread = await inbox.thread()
    answer = await inbox.team.call(method, f"{thread.url}/labels", body)
    assert answer.status_code == status, answer.text
    if body == {}:
        assert answer.json()["name"] == "missing_required_field"


async def test_a_label_that_the_inbox_does_not_have_cannot_be_taken_off(inbox: Inbox) -> None:
    thread = await inbox.thread()
    assert (await thread.delete(f"/labels/{NOBODY}")).json()["message"] == "Label not found"
    assert (await thread.delete("/labels/x")).status_code == 422


async def test_two_sets_of_labels_at_once_are_never_mixed(inbox: Inbox) -> None:
    thread = await inbox.thread()
    labels = [await inbox.label(f"label {number}") for number in range(6)]
    sets = [labels[:3], labels[3:]]
    for _ in range(5):
        answers = await asyncio.gather(*(thread.put_labels(one) for one in sets * 4))
        found = [[label["id"] for label in answer.json()["data"]] for answer in answers]
        assert all(one in sets for one in found)
        assert [one["id"] for one in (await thread.get()).json()["labels"]] in sets
    assert await inbox.team.db.value(LABEL_PLACES, thread.id) == 3


async def test_labels_stand_in_lists_where_their_thread_stands(inbox: Inbox) -> None:
    label, thread = await inbox.label("Refunds"), await inbox.thread()
    await thread.put_labels([label])
    for change in ({"read": True}, {"folder": "archive"}, {"folder": "trash"}, {"read": False}):
        await thread.patch(**change)
        assert await inbox.team.db.value(LABEL_PLACES, thread.id) == 1, change


async def test_a_thread_is_assigned_to_a_member_of_the_team(inbox: Inbox) -> None:
    await subscribe(inbox.team, list(KINDS))
    thread, team = await inbox.thread(), inbox.team
    path = f"{thread.url}/assignee"
    member = "INSERT INTO team_members (team_id, id, email, created_at) VALUES ($1, $2, $3, now())"
    for email in ("mina@harbor.example", "ola@harbor.example"):
        await team.db.run(member, inbox.new_id(), email)
    base = {"object": "inbox_thread", "id": str(thread.id)}
    mina, ola = {"email": "Mina@Harbor.example"}, {"email": "ola@harbor.example"}
    for _ in range(2):
        answer = await team.call("PUT", path, mina)
        assert answer.json() == {**base, "assignee_email": "mina@harbor.example"}, answer.text
    await team.call("PUT", path, ola)
    for _ in range(2):
        assert (await team.call("DELETE", path)).json() == {**base, "assignee_email": None}
    for body, name in (
        ({"email": "nobody@harbor.example"}, "validation_error"),
        ({"email": 1}, "validation_error"),
        ({"email": None}, "missing_required_field"),
        ({}, "missing_required_field"),
    ):
        refused = await team.call("PUT", path, body)
        assert (refused.status_code, refused.json()["name"]) == (422, name)
    first, second, third = await told(inbox)
    assert first == ("assigned", {"assignee_email": "mina@harbor.example"})
    assert second[1]["previous_assignee_email"] == "mina@harbor.example"
    assert third == ("unassigned", {"previous_assignee_email": "ola@harbor.example"})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/emails"),
        ("PUT", "/labels"),
        ("POST", "/labels"),
        ("DELETE", f"/labels/{NOBODY}"),
        ("PUT", "/assignee"),
        ("DELETE", "/assignee"),
        ("GET", f"/emails/{NOBODY}"),
        ("GET", f"/emails/{NOBODY}/attachments"),
    ],
)
async def test_a_thread_of_another_inbox_is_unknown(inbox: Inbox, method: str, path: str) -> None:
    foreign = await (await an_inbox(inbox.team, "sales")).thread()
    member = "INSERT INTO team_members (team_id, id, email, created_at) VALUES ($1, $2, 'a@b.example', now())"
    await inbox.team.db.run(member, inbox.new_id())
    body = {"read": True, "email": "a@b.example", "labels": [await inbox.label("Refunds")]}
    answer = await inbox.team.call(method, f"{inbox.url}/threads/{foreign.id}{path}", body)
    assert (answer.status_code, answer.json()["message"]) == (404, "Thread not found"), answer.text
