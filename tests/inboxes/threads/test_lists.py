"""Lists of threads (inboxes.md 5.1)."""

from __future__ import annotations

from urllib.parse import quote

import msgspec
import pytest

from kit.inbox_rows import Inbox, an_inbox
from kit.searched_inboxes import SearchedInbox


async def test_a_list_item_has_its_fields_in_order(inbox: Inbox) -> None:
    refunds = await inbox.label("Refunds")
    thread = await inbox.thread("Refund for order 88")
    await thread.put_labels([refunds])
    answer = await inbox.get("/threads")
    assert answer.status_code == 200
    item = {
        "id": str(thread.id),
        "subject": "Refund for order 88",
        "from": "Iris Vale <iris@customer.example>",
        "to": ["help@harbor.example"],
        "cc": [],
        "bcc": [],
        "labels": [{"id": refunds, "name": "Refunds", "color": "#E93D82"}],
        "message_count": 1,
        "has_attachment": False,
        "has_draft": False,
        "read": False,
        "received_at": "2026-10-01T08:00:00.000Z",
        "email_count": 1,
        "folder": "inbox",
    }
    assert answer.content == msgspec.json.encode({"object": "list", "has_more": False, "data": [item]})


async def test_after_goes_to_older_threads(inbox: Inbox) -> None:
    threads = [str((await inbox.thread(at=at)).id) for at in range(7)]
    newest_first = threads[::-1]
    assert await inbox.listed() == newest_first
    assert await inbox.listed(f"?limit=2&after={newest_first[2]}") == newest_first[3:5]
    assert await inbox.listed(f"?limit=2&before={newest_first[4]}") == newest_first[2:4]
    assert (await inbox.get("/threads?limit=7")).json()["has_more"] is False
    assert (await inbox.get("/threads?limit=6")).json()["has_more"] is True
    assert (await inbox.get(f"/threads?limit=2&before={newest_first[2]}")).json()["has_more"] is False


async def test_a_thread_moves_up_with_a_new_message(inbox: Inbox) -> None:
    first, second = await inbox.thread(at=0), await inbox.thread(at=1)
    assert await inbox.listed() == [str(second.id), str(first.id)]
    await first.message(at=2)
    assert await inbox.listed() == [str(first.id), str(second.id)]


async def test_every_pair_of_filters_shows_what_it_says(inbox: Inbox) -> None:
    """Against a plain description of the filters, for threads of every kind."""
    label = await inbox.label("Refunds")
    kinds = [
        (folder, has_sent, is_read, labelled)
        for folder in ("inbox", "archive", "spam", "sent", "trash")
        for has_sent in (False, True)
        for is_read in (False, True)
        for labelled in (False, True)
    ]
    made = []
    for number, (folder, has_sent, is_read, labelled) in enumerate(kinds):
        thread = await inbox.thread(folder=folder, at=number, is_read=is_read)
        if has_sent:
            await thread.message("outbound", at=number + 0.5)
        if labelled:
            await thread.put_labels([label])
        made.append((str(thread.id), folder, has_sent, is_read, labelled))
    asked = {
        "": {"inbox"},
        "folder=sent": {"sent"},
        "folder=trash": {"trash"},
        "folders=": {"inbox"},
        "folders=spam,archive": {"spam", "archive"},
        "folders=sent": {"sent", "+sent"},
        "folders=sent,trash": {"sent", "trash", "+sent"},
        "folders=inbox,archive,spam,sent,trash": {"inbox", "archive", "spam", "sent", "trash"},
    }
    for folders, wanted in asked.items():
        for read in (None, True, False):
            for labels in (False, True):
                query = "&".join(
                    part
                    for part in (
                        folders,
                        "" if read is None else f"read={str(read).lower()}",
                        f"label={label}" if labels else "",
                        "limit=100",
                    )
                    if part
                )
                expected = [
                    thread_id
                    for thread_id, folder, has_sent, is_read, labelled in reversed(made)
                    if (
                        folder in wanted
                        or ("+sent" in wanted and has_sent and folder not in ("spam", "trash"))
                    )
                    and read in (None, is_read)
                    and (labelled or not labels)
                ]
                assert await inbox.listed(f"?{query}") == expected, query


async def test_the_newer_labels_look_into_three_folders(inbox: Inbox) -> None:
    label, other = await inbox.label("Refunds"), await inbox.label("Orders")
    made = {}
    for at, folder in enumerate(("inbox", "archive", "spam", "sent", "trash")):
        thread = await inbox.thread(folder=folder, at=at, direction="inbound")
        await thread.put_labels([label, other])
        made[folder] = str(thread.id)
    newer = [made["sent"], made["archive"], made["inbox"]]
    assert await inbox.listed(f"?labels={label},{other}") == newer
    assert await inbox.listed(f"?label={label}&label={other}") == [made["inbox"]]
    assert await inbox.listed(f"?label={label},{other}&folder=spam") == [made["spam"]]
    assert await inbox.listed("?labels=") == [made["inbox"]]


@pytest.mark.parametrize(
    ("query", "status", "name"),
    [
        ("folder=junk", 422, "validation_error"),
        ("folders=inbox,junk", 422, "validation_error"),
        ("folder=inbox&folders=sent", 422, "validation_error"),
        ("label=x", 422, "validation_error"),
        ("label={id}&labels={id}", 422, "validation_error"),
        ("labels={id}", 404, "not_found"),
        ("read=yes", 422, "validation_error"),
        ("read=", 422, "validation_error"),
        ("limit=0", 422, "validation_error"),
        ("limit=101", 422, "validation_error"),
        ("after={id}&before={id}", 422, "validation_error"),
        ("after=x", 422, "validation_error"),
        ("after={id}", 404, "not_found"),
        ("before={id}", 404, "not_found"),
    ],
)
async def test_a_bad_question_is_refused(inbox: Inbox, query: str, status: int, name: str) -> None:
    answer = await inbox.get("/threads?" + query.replace("{id}", "00000000-0000-4000-8000-000000000000"))
    assert (answer.status_code, answer.json()["name"]) == (status, name), answer.text


async def test_a_text_is_in_the_subject_or_the_name_of_a_label(inbox: Inbox) -> None:
    made = {}
    subjects = (
        "Refund for order 88",
        "100% of it_em",
        "ÄRGER mit Größe",
        "返金のお願い",
        None,
        "a.b*c[d]\\e",
    )
    for at, subject in enumerate(subjects):
        made[subject] = str((await inbox.thread(subject, at=at)).id)
    labelled = await inbox.thread("Other", at=10)
    label, other = await inbox.label("Big Refunds"), await inbox.label("Orders")
    await labelled.put_labels([label])
    refunds = [str(labelled.id), made["Refund for order 88"]]
    asked = {
        "refund": refunds,
        "REFUND": refunds,
        "  refund ": refunds,
        "fund for": refunds[1:],
        "%": [made["100% of it_em"]],
        "it_": [made["100% of it_em"]],
        "it-": [],
        "ärger": [made["ÄRGER mit Größe"]],
        "GRÖSS": [made["ÄRGER mit Größe"]],
        "Größen": [],
        "GRÖ": [made["ÄRGER mit Größe"]],
        "金の": [made["返金のお願い"]],
        "B*C[D]\\E": [made["a.b*c[d]\\e"]],
        ".*": [],
        "x" * 256: [],
    }
    for described in (False, True):
        for text, expected in asked.items():
            assert await inbox.listed(f"?query={quote(text)}") == expected, (text, described)
        await SearchedInbox(inbox).describe()
    assert len(await inbox.listed("?query=%20%20")) == 7
    assert await inbox.listed(f"?query=refund&label={label}") == refunds[:1]
    assert await inbox.listed(f"?query=refund&label={other}") == []
    assert await inbox.listed("?query=refund&limit=1") == refunds[:1]
    assert await inbox.listed(f"?query=refund&after={refunds[0]}") == refunds[1:]
    assert await inbox.listed(f"?query=refund&before={refunds[1]}") == refunds[:1]
    assert await inbox.listed("?query=refund&folder=archive") == []
    assert (await inbox.get(f"/threads?query={'x' * 257}")).status_code == 422


async def test_up_to_fifty_labels_may_be_named(inbox: Inbox) -> None:
    labels = [await inbox.label(f"label {number}") for number in range(51)]
    assert await inbox.listed(f"?labels={','.join(labels[:50])}") == []
    assert (await inbox.get(f"/threads?labels={','.join(labels)}")).status_code == 422


async def test_a_cursor_is_in_one_of_the_folders_and_may_be_read_by_now(inbox: Inbox) -> None:
    older, newer = await inbox.thread(at=0), await inbox.thread(at=1)
    assert await inbox.listed(f"?read=false&after={newer.id}") == [str(older.id)]
    await newer.patch(read=True)
    assert await inbox.listed(f"?read=false&after={newer.id}") == [str(older.id)]
    await newer.patch(folder="archive")
    assert (await inbox.get(f"/threads?after={newer.id}")).status_code == 404
    assert await inbox.listed(f"?folders=inbox,archive&after={newer.id}") == [str(older.id)]


async def test_a_cursor_of_another_inbox_is_unknown(inbox: Inbox) -> None:
    other = await an_inbox(inbox.team, "sales")
    foreign = await other.thread()
    assert (await inbox.get(f"/threads?after={foreign.id}")).status_code == 404


async def test_an_inbox_is_named_by_its_address_in_any_case_too(inbox: Inbox) -> None:
    thread = await inbox.thread()
    for path in ("help@harbor.example", "HELP%40Harbor.example"):
        answer = await inbox.team.get(f"/inboxes/{path}/threads")
        assert [item["id"] for item in answer.json()["data"]] == [str(thread.id)]


async def test_another_team_sees_no_inbox(inbox: Inbox) -> None:
    quay = await inbox.team.world.team("Quay")
    await inbox.thread()
    answer = await quay.get(f"{inbox.url}/threads")
    assert (answer.status_code, answer.json()["message"]) == (404, "Inbox not found")
