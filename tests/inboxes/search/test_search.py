"""GET /inboxes/{inbox_id}/threads/search (inboxes.md 5.2)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import msgspec
import pytest

from kit.inbox_rows import BEGAN, an_inbox
from kit.manual_world import run_jobs
from kit.searched_inboxes import Mail, SearchedInbox, searched_world
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.inboxes.search import terms
from pillarbox.inboxes.search.invariants import INVARIANTS

ID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def inbox(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[SearchedInbox]:
    return searched_world(database_url, tmp_path)


async def test_an_item_has_its_fields_in_order(inbox: SearchedInbox) -> None:
    (mail,) = await inbox.add(Mail("Refund for order 88", files=["invoice.pdf"]))
    answer = await inbox.inbox.get("/threads/search?query=invoice")
    item = {
        "id": str(mail.thread_id),
        "subject": "Refund for order 88",
        "from": "Iris Vale <iris@customer.example>",
        "to": ["help@harbor.example"],
        "cc": [],
        "bcc": [],
        "labels": [],
        "message_count": 1,
        "has_attachment": True,
        "has_draft": False,
        "read": False,
        "received_at": "2026-10-01T08:00:00.000Z",
        "email_count": 1,
        "folder": "inbox",
        "matched_email_id": str(mail.id),
    }
    assert answer.content == msgspec.json.encode({"object": "list", "has_more": False, "data": [item]})


async def test_words_are_looked_for_in_every_part(inbox: SearchedInbox) -> None:
    mail = Mail(
        "Subject words",
        "The body\nhas  lines.",
        sender="Øyvind <oy@customer.example>",
        cc=["Copy <copied@quay.example>"],
        files=["Größe_2.pdf"],
    )
    await inbox.add(mail, Mail("Other"))
    for described in (False, True):
        if described:
            await inbox.describe()
        for query in (
            *(
                "subject",
                "WORDS subject",
                "body lines",
                "øyvind",
                "copied",
                "grösse",
                "pdf 2",
                "copied@quay.example",
            ),
            *(
                '"the body has lines"',
                '"Größe 2 pdf"',
                "body -other",
                '-"lines has" body',
                "body & subject",
            ),
        ):
            assert await inbox.found(query=query) == [str(mail.id)], (query, described)
        for query in ("bod", '"words the"', '"body lines"', "body -lines", "subject other", "&", "😀"):
            assert await inbox.found(query=query) == [], (query, described)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("返金をお願いします", "お願い"),
        ("คืนเงินใบแจ้งหนี้", "ใบแจ้ง"),
        ("請求書を送付", "求書"),
        ("ﾊﾝｶｸカナ", "ンカク"),
    ],
)
async def test_languages_without_blanks_find_parts(inbox: SearchedInbox, text: str, part: str) -> None:
    mail, _ = await inbox.add(Mail("x", text), Mail("y", text[::-1]))
    for _ in range(2):
        assert await inbox.found(query=part) == [str(mail.id)]
        assert await inbox.found(query=f'"{part}"') == [str(mail.id)]
        await inbox.describe()


async def test_people_are_looked_for_by_any_piece(inbox: SearchedInbox) -> None:
    first, second = await inbox.add(
        Mail("a", sender="Ann Öz <ann@quay.example>", to=["help@harbor.example"], cc=["c_1@x.example"]),
        Mail(
            "b",
            sender="Bob <bob@quay.example>",
            to=["x@y.example"],
            bcc=["Hidden <h@z.example>"],
            is_inbound=False,
        ),
    )
    both = {"folders": "inbox,sent"}
    for _ in range(2):
        assert await inbox.found(from_="ANN", **both) == [str(first.id)]
        assert await inbox.found(from_="öz <a", **both) == [str(first.id)]
        assert await inbox.found(from_="quay", **both) == [str(second.id), str(first.id)]
        assert await inbox.found(from_="nobody, bob@", **both) == [str(second.id)]
        assert await inbox.found(to="@y.", **both) == [str(second.id)]
        assert await inbox.found(cc="c_1", **both) == [str(first.id)]
        assert await inbox.found(cc="c%1", **both) == []
        assert await inbox.found(bcc="hidden", **both) == [str(second.id)]
        assert await inbox.found(bcc="ann", **both) == []
        assert await inbox.found(from_="b", to="h", **both) == []
        assert await inbox.found(from_="", query=" ", **both) == [None, None]
        await inbox.describe()


async def test_all_filters_must_match_one_message(inbox: SearchedInbox) -> None:
    (first,) = await inbox.add(Mail("Refund", "apples", sender="ann@quay.example"))
    (second,) = await inbox.add(
        Mail("Re: Refund", "pears", sender="bob@quay.example", files=["a.pdf"], thread=first.id)
    )
    assert first.thread_id == second.thread_id
    for _ in range(2):
        assert await inbox.found(query="pears") == [str(second.id)]
        assert await inbox.found(query="apples", from_="ann") == [str(first.id)]
        assert await inbox.found(query="apples pears") == []
        assert await inbox.found(query="apples", from_="bob") == []
        assert await inbox.found(query="apples", has_attachment="true") == []
        assert await inbox.found(has_attachment="true") == [str(second.id)]
        assert await inbox.found(has_attachment="false") == [str(first.id)]
        await inbox.describe()


async def test_the_most_relevant_message_is_named_else_the_newest(inbox: SearchedInbox) -> None:
    (first,) = await inbox.add(Mail("Refund now", "text"))
    second, third = await inbox.add(
        Mail("Re: other", "refund", thread=first.id), Mail("Re: other", "refund", thread=first.id)
    )
    for _ in range(2):
        assert await inbox.found(query="refund") == [str(first.id)]
        assert await inbox.found(query="refund -now") == [str(third.id)]
        assert await inbox.found(query="-now") == [str(third.id)]
        assert await inbox.found(from_="iris") == [str(third.id)]
        assert await inbox.found(folders="inbox") == [None]
        await inbox.describe()
    assert second.thread_id == first.thread_id


async def test_the_message_itself_must_be_in_a_folder(inbox: SearchedInbox) -> None:
    (first,) = await inbox.add(Mail("Refund", "asked"))
    (answer,) = await inbox.add(Mail("Re: Refund", "answered", is_inbound=False, thread=first.thread_id))
    for _ in range(2):
        assert await inbox.found(query="asked", folders="sent") == []
        assert await inbox.found(query="answered", folders="sent") == [str(answer.id)]
        assert await inbox.found(query="answered", folder="sent") == []
        assert await inbox.found(query="asked", folders="inbox,sent") == [str(first.id)]
        await inbox.describe()
    await inbox.move(first, "trash")
    assert await inbox.found(query="answered", folders="sent") == []
    assert await inbox.found(query="answered", folder="trash") == [str(answer.id)]


async def test_dates_name_days_and_instants(inbox: SearchedInbox) -> None:
    mails = [Mail(str(day), at=BEGAN + timedelta(days=day)) for day in range(1, 6)]
    await inbox.add(*mails)
    ids = [str(mail.id) for mail in reversed(mails)]
    for _ in range(2):
        assert await inbox.found(start_date="2026-10-04") == ids[:3]
        assert await inbox.found(end_date="2026-10-04") == ids[2:]
        assert await inbox.found(start_date="2026-10-04", end_date="2026-10-04") == ids[2:3]
        assert (
            await inbox.found(start_date="2026-10-04T08:00:00Z", end_date="2026-10-04T08:00:00Z") == ids[2:3]
        )
        assert await inbox.found(end_date="2026-10-04T09:59:59+02:00") == ids[3:]
        assert await inbox.found(start_date="2026-10-04T08:00:00.001Z", end_date="9999-12-31") == ids[:2]
        await inbox.describe()


async def test_the_instant_that_a_message_shows_names_it(inbox: SearchedInbox) -> None:
    mails = [Mail(str(number), at=BEGAN + timedelta(microseconds=number)) for number in (1600, 999, 1000)]
    await inbox.add(*mails)
    last, first, second = [str(mail.id) for mail in mails]
    for described in (False, True):
        if described:
            await inbox.describe()
        for shown in ("2026-10-01T08:00:00.001Z", "2026-10-01T08:00:00.0015Z"):
            assert await inbox.found(start_date=shown, end_date=shown) == [last, second], described
        assert await inbox.found(end_date="2026-10-01T08:00:00.000Z") == [first], described
        assert await inbox.found(end_date="2026-10-01T08:00:00.001Z") == [last, second, first], described


async def test_pages_go_as_those_of_lists(inbox: SearchedInbox) -> None:
    mails = [Mail("Refund", f"n{number % 2} all") for number in range(9)]
    await inbox.add(*mails)
    for _ in range(2):
        found = await inbox.threads(query="n0")
        assert found == [str(mail.thread_id) for mail in mails[8::-2]]
        assert await inbox.threads(query="n0", limit=2, after=found[1]) == found[2:4]
        assert await inbox.threads(query="n0", limit=2, before=found[3]) == found[1:3]
        assert (await inbox.page(query="n0", limit=2, before=found[3]))["has_more"] is True
        assert (await inbox.page(query="n0", limit=2, before=found[2]))["has_more"] is False
        assert (await inbox.page(query="n0", limit=5))["has_more"] is False
        assert (await inbox.page(query="n0", limit=4))["has_more"] is True
        # A cursor need not fit the filters.
        assert await inbox.threads(query="n0", after=str(mails[7].thread_id)) == found[1:]
        await inbox.describe()


async def test_filters_of_threads_hold_too(inbox: SearchedInbox) -> None:
    first, second = await inbox.add(Mail("Refund a"), Mail("Refund b"))
    label, other = await inbox.inbox.label("L"), await inbox.inbox.label("M")
    team = inbox.inbox.team
    await team.call("PUT", f"{inbox.inbox.url}/threads/{first.thread_id}/labels", {"labels": [label]})
    await team.call("PATCH", f"{inbox.inbox.url}/threads/{second.thread_id}", {"read": True})
    for _ in range(2):
        assert await inbox.found(query="refund", labels=label) == [str(first.id)]
        assert await inbox.found(query="refund", label=f"{label},{other}") == [str(first.id)]
        assert await inbox.found(query="refund", labels=other) == []
        assert await inbox.found(query="refund", read="true") == [str(second.id)]
        assert await inbox.found(query="refund", read="false") == [str(first.id)]
        assert await inbox.found(query="refund", folder="spam") == []
        await inbox.describe()


async def test_beginnings_of_words_and_words_without_accents_are_found(inbox: SearchedInbox) -> None:
    first, second = await inbox.add(Mail("Café Refunded"), Mail("Cafe closed"))
    for _ in range(2):
        assert await inbox.found(query="refun*") == [str(first.id)]
        assert await inbox.found(query="efun*") == []
        assert set(await inbox.found(query="cafe")) == {str(first.id), str(second.id)}
        assert await inbox.found(query="café") == [str(first.id)]
        assert await inbox.found(query="caf* -refun*") == [str(second.id)]
        await inbox.describe()


@pytest.mark.parametrize(
    ("query", "status", "name"),
    [
        ("query=" + "x" * 257, 422, "validation_error"),
        ("query=" + quote(" w" * 33), 422, "validation_error"),
        ("query=" + quote('"' + " w" * 33), 422, "validation_error"),
        ("query=from:iris", 422, "validation_error"),
        ("query=subject:refund", 422, "validation_error"),
        ("query=a+OR+b", 422, "validation_error"),
        ("query=a%00b", 422, "validation_error"),
        ("from=" + ",".join(map(str, range(21))), 422, "validation_error"),
        ("cc=" + "x" * 257, 422, "validation_error"),
        ("bcc=a%00", 422, "validation_error"),
        ("has_attachment=yes", 422, "validation_error"),
        ("has_attachment=", 422, "validation_error"),
        ("start_date=yesterday", 422, "validation_error"),
        ("start_date=2026-02-30", 422, "validation_error"),
        ("end_date=2026-10-01&start_date=2026-10-02", 422, "validation_error"),
        ("end_date=2026-10-01T10:00:00Z&start_date=2026-10-01T10:00:01Z", 422, "validation_error"),
        ("folder=inbox&folders=sent", 422, "validation_error"),
        (f"label={ID}&labels={ID}", 422, "validation_error"),
        (f"labels={ID}&query=x", 404, "not_found"),
        ("read=maybe", 422, "validation_error"),
        ("limit=101", 422, "validation_error"),
        ("after=x&query=x", 422, "validation_error"),
        (f"after={ID}&before={ID}", 422, "validation_error"),
        (f"after={ID}&query=x", 404, "not_found"),
        (f"after={ID}", 404, "not_found"),
    ],
)
async def test_a_bad_question_is_refused(inbox: SearchedInbox, query: str, status: int, name: str) -> None:
    answer = await inbox.inbox.get(f"/threads/search?{query}")
    assert (answer.status_code, answer.json()["name"]) == (status, name), answer.text


@pytest.mark.parametrize(
    "query",
    [
        "query=" + "x" * 256,
        "query=" + quote(" w" * 32),
        "from=" + ",".join(map(str, range(20))),
        "to=" + quote("é" * 256),
        "query=%F0%9F%98%80&from=%F0%9F%98%80",
        "query=%22",
        "query=-",
        "query=%5C%25_%27%22%27",
        "from=%5C,%25,_",
        "start_date=1970-01-01&end_date=9999-12-31T23:59:59.999999Z",
        "start_date=9999-12-31T23:59:59Z",
        "end_date=1970-01-01",
        "folders=&labels=&from=,&to=&cc=%20&bcc=&start_date=&end_date=",
    ],
)
async def test_a_strange_question_is_answered(inbox: SearchedInbox, query: str) -> None:
    await inbox.add(Mail())
    for _ in range(2):
        answer = await inbox.inbox.get(f"/threads/search?{query}")
        assert answer.status_code == 200, answer.text
        await inbox.describe()


async def test_another_inbox_has_messages_of_its_own(inbox: SearchedInbox) -> None:
    other = SearchedInbox(await an_inbox(inbox.inbox.team, "sales"))
    (mine,), (theirs,) = await inbox.add(Mail("Refund")), await other.add(Mail("Refund"))
    await inbox.describe()
    assert await inbox.found(query="refund") == [str(mine.id)]
    assert await other.found(query="refund") == [str(theirs.id)]
    assert await inbox.threads(query="refund", after=str(mine.thread_id)) == []
    answer = await other.inbox.get(f"/threads/search?query=refund&after={mine.thread_id}")
    assert answer.status_code == 404


async def test_a_message_is_found_from_its_commit_on_while_blocks_are_made(inbox: SearchedInbox) -> None:
    """Whoever has an answer to adding it finds it, described or not, by an old id or a new one."""
    stop = asyncio.Event()

    async def describe() -> None:
        while not stop.is_set():
            await inbox.describe(worth=3, together=4)
            await asyncio.sleep(0)

    describing = asyncio.create_task(describe())
    for number in range(60):
        # Every third has an id that is older than what is described.
        at = BEGAN + timedelta(minutes=number - (40 if number % 3 == 0 else 0))
        (mail,) = await inbox.add(Mail("Refund", f"number{number} every", at=at))
        assert await inbox.found(query=f"number{number}") == [str(mail.id)]
    stop.set()
    await describing
    assert len(await inbox.found(query="every", limit=100)) == 60


async def test_blocks_of_another_version_are_described_anew(inbox: SearchedInbox) -> None:
    mails = await inbox.add(*[Mail("Refund", f"number{number}") for number in range(8)])
    await inbox.describe()
    pool = inbox.inbox.team.world.pool
    await pool.execute("UPDATE inbox_search_blocks SET version = $1", terms.VERSION + 1)
    await pool.execute("UPDATE inbox_search_rows SET bits = ''")
    assert await inbox.found(query="number3") == [str(mails[3].id)]
    assert await inbox.renew() == 1
    assert await pool.fetchval("SELECT array_agg(version) FROM inbox_search_blocks") == [terms.VERSION]
    assert await pool.fetchval("SELECT count(*) FROM inbox_search_late") == 0
    assert await inbox.found(query="number3") == [str(mails[3].id)]
    assert await inbox.found(query="number9") == []


async def test_nothing_is_left_of_a_deleted_inbox(inbox: SearchedInbox) -> None:
    await inbox.add(*[Mail("Refund") for _ in range(9)])
    await inbox.describe(worth=3)
    await inbox.add(Mail("late", at=BEGAN - timedelta(days=1)))
    await inbox.due()
    assert await inbox.left() != [0, 0, 0, 0]
    assert (await inbox.inbox.team.call("DELETE", inbox.inbox.url)).status_code == 200
    await run_jobs(inbox.inbox.team.world)
    assert await inbox.left() == [0, 0, 0, 0]


async def test_what_was_purged_is_not_found(inbox: SearchedInbox) -> None:
    gone, kept = await inbox.add(Mail("Refund"), Mail("Refund"))
    await inbox.describe()
    pool = inbox.inbox.team.world.pool
    await pool.execute("DELETE FROM inbox_messages WHERE id = $1", gone.id)
    await pool.execute("DELETE FROM inbox_threads WHERE id = $1", gone.thread_id)
    assert await inbox.found(query="refund") == [str(kept.id)]


async def test_an_inbox_becomes_due_by_and_by(inbox: SearchedInbox) -> None:
    ids = [UUID(int=(1 << 100) + number) for number in range(250, 260)]
    await inbox.add(*[Mail(id=one) for one in ids[:6]])
    assert (await inbox.left())[3] == 0
    await inbox.add(Mail(id=ids[6]))
    assert (await inbox.left())[3] == 1
    assert await inbox.keep_up() == "1 blocks"
    assert (await inbox.left())[3] == 0


async def test_verify_finds_a_message_that_is_in_no_block(inbox: SearchedInbox) -> None:
    mails = await inbox.add(*[Mail(f"Refund {number}") for number in range(4)])
    await inbox.describe(worth=2)
    await inbox.add(Mail("late", at=BEGAN - timedelta(days=1)), Mail("new"))
    pool = inbox.inbox.team.world.pool

    async def gaps() -> list[str]:
        return [gap.name for gap in (await reconcile(pool, 5, INVARIANTS)).gaps]

    assert await gaps() == []
    await pool.execute("UPDATE inbox_messages SET id = $2 WHERE id = $1", mails[0].id, UUID(int=7))
    assert await gaps() == ["message_not_described"]
    await pool.execute("UPDATE inbox_messages SET id = $1 WHERE id = $2", mails[0].id, UUID(int=7))
    await pool.execute("DELETE FROM inbox_search_rows WHERE part = 127")
    assert await gaps() == ["block_without_parts"]
