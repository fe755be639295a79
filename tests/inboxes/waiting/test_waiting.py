"""Waiting for a list of threads to change (extension `wait` of inboxes.md 5.1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.inbox_rows import Inbox, Thread, an_inbox, inbox_world
from kit.inboxes import inbox_domain
from kit.world import World, world
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.waiting import waiters
from pillarbox.inboxes.waiting.changes import INBOXES_EACH, changed
from pillarbox.inboxes.waiting.waiters import Waiters, WaitingRequest
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.receiving.arrival import AcceptedRecipient, Arrival
from pillarbox.receiving.receive import MessageReceiver

LONG = 60
QUESTION = (
    b"From: iris@customer.example\r\nSubject: Refund\r\nMessage-ID: <1@customer.example>\r\n\r\nWhere?\r\n"
)


@asynccontextmanager
async def telling_world(database_url: str, folder: Path) -> AsyncIterator[Inbox]:
    """An inbox whose process hears what is committed in it."""
    async with inbox_world(database_url, folder) as inbox:
        waiters = inbox.team.world.app.need(Waiters)
        await waiters.start()
        try:
            yield inbox
        finally:
            await waiters.stop()


@pytest.fixture
def inbox(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Inbox]:
    return telling_world(database_url, tmp_path)


async def until(claim: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not claim():
            await asyncio.sleep(0.01)


def waiting(pillarbox: World) -> int:
    return pillarbox.app.need(Waiters)._of_team.total()


async def state(inbox: Inbox, query: str = "") -> str:
    """The `change` of the list now."""
    found: str = (await inbox.get(f"/threads?wait=0{query}")).json()["change"]
    return found


async def begun(inbox: Inbox, query: str) -> asyncio.Task[httpx.Response]:
    """A request that waits, once it does."""
    pillarbox = inbox.team.world
    before = waiting(pillarbox)
    task = asyncio.create_task(inbox.get(f"/threads?{query}"))
    await until(lambda: waiting(pillarbox) > before or task.done())
    assert not task.done(), task.result().text
    return task


async def within(task: Awaitable[httpx.Response]) -> dict[str, Any]:
    """The answer, which comes long before the time is over."""
    async with asyncio.timeout(LONG / 2):
        answer = await task
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_without_wait_the_answer_is_the_contracts(inbox: Inbox) -> None:
    assert list((await inbox.get("/threads")).json()) == ["object", "has_more", "data"]


async def test_a_list_with_threads_is_answered_at_once_with_its_change(inbox: Inbox) -> None:
    thread = await inbox.thread()
    answer = await within(inbox.get(f"/threads?wait={LONG}"))
    assert list(answer) == ["object", "has_more", "data", "change"]
    assert [item["id"] for item in answer["data"]] == [str(thread.id)]
    assert answer["change"] == await state(inbox)


async def test_a_state_that_is_old_is_answered_at_once(inbox: Inbox) -> None:
    await inbox.thread()
    known = await state(inbox)
    await inbox.thread(at=1)
    answer = await within(inbox.get(f"/threads?wait={LONG}&after_change={known}"))
    assert len(answer["data"]) == 2
    assert answer["change"] != known


async def test_an_empty_list_is_waited_for(inbox: Inbox) -> None:
    thread = await inbox.thread(is_read=True)
    task = await begun(inbox, f"read=false&wait={LONG}")
    assert (await thread.patch(read=False)).status_code == 200
    assert [item["id"] for item in (await within(task))["data"]] == [str(thread.id)]
    assert waiting(inbox.team.world) == 0


async def _read(thread: Thread) -> httpx.Response:
    return await thread.patch(read=True)


async def _archive(thread: Thread) -> httpx.Response:
    return await thread.patch(folder="archive")


async def _trash(thread: Thread) -> httpx.Response:
    return await thread.delete()


async def _label(thread: Thread) -> httpx.Response:
    return await thread.put_labels([await thread.inbox.label("Refunds")])


@pytest.mark.parametrize("change", [_read, _archive, _trash, _label])
async def test_every_change_of_what_the_page_shows_ends_the_wait(
    inbox: Inbox, change: Callable[[Thread], Awaitable[httpx.Response]]
) -> None:
    thread = await inbox.thread()
    known = await state(inbox)
    task = await begun(inbox, f"wait={LONG}&after_change={known}")
    assert (await change(thread)).status_code == 200
    assert (await within(task))["change"] != known


async def _rename(inbox: Inbox, label: str, _: Thread) -> httpx.Response:
    return await inbox.team.call("PATCH", f"{inbox.url}/labels/{label}", {"name": "Money"})


async def _delete_label(inbox: Inbox, label: str, _: Thread) -> httpx.Response:
    return await inbox.team.call("DELETE", f"{inbox.url}/labels/{label}")


async def _draft(inbox: Inbox, _: str, thread: Thread) -> httpx.Response:
    answered = {"thread_id": str(thread.id), "reply_to_email_id": str(thread.messages[-1]), "text": "Soon."}
    return await inbox.team.post(f"{inbox.url}/drafts", answered)


async def _reply(inbox: Inbox, _: str, thread: Thread) -> httpx.Response:
    return await inbox.team.post(f"{thread.url}/emails/{thread.messages[-1]}/reply", {"text": "Soon."})


async def _receive(inbox: Inbox, _: str, thread: Thread) -> httpx.Response:
    team = inbox.team
    raw = b"From: bo@quay.example\r\nSubject: Delivery\r\n\r\nWhen?\r\n"
    arrival = Arrival(
        client="",
        helo="",
        protocol="LMTP",
        tls=None,
        mail_from="",
        recipients=(AcceptedRecipient(team.id, inbox.address),),
    )
    await team.world.app.need(MessageReceiver).take(arrival, ReceivedText(raw, None, len(raw)))
    return await inbox.get("/threads")


@pytest.mark.parametrize("change", [_rename, _delete_label, _draft, _reply, _receive])
async def test_whoever_writes_wakes(
    inbox: Inbox, change: Callable[[Inbox, str, Thread], Awaitable[httpx.Response]]
) -> None:
    """Labels, drafts, answers and mail that comes in, each by its own way."""
    await inbox_domain(inbox.team)
    label = await inbox.label("Refunds")
    thread = await inbox.thread()
    await thread.received(QUESTION, at=2)
    await thread.put_labels([label])
    known = await state(inbox)
    task = await begun(inbox, f"wait={LONG}&after_change={known}")
    assert (await change(inbox, label, thread)).status_code in (200, 201)
    assert (await within(task))["change"] != known


async def test_a_change_that_the_page_does_not_show_lets_it_wait(inbox: Inbox) -> None:
    spam = await inbox.thread(folder="spam", is_read=True)
    task = await begun(inbox, f"wait={LONG}")
    await spam.patch(read=False)
    await spam.patch(read=True)
    await spam.patch(folder="inbox")
    answer = await within(task)
    assert [item["id"] for item in answer["data"]] == [str(spam.id)]
    assert answer["data"][0]["read"] is True


async def test_the_time_is_over_and_nothing_has_changed(inbox: Inbox) -> None:
    await inbox.thread()
    known = await state(inbox)
    answer = await within(inbox.get(f"/threads?wait=1&after_change={known}"))
    assert answer["change"] == known
    assert len(answer["data"]) == 1


async def test_an_inbox_that_is_deleted_meanwhile_is_not_found(inbox: Inbox) -> None:
    task = await begun(inbox, f"wait={LONG}")
    assert (await inbox.team.call("DELETE", inbox.url)).status_code == 200
    async with asyncio.timeout(LONG / 2):
        assert (await task).status_code == 404


@pytest.mark.parametrize(
    "query", ["wait=61", "wait=-1", "wait=1.5", "wait=", "wait=x", "after_change=" + "x" * 65]
)
async def test_bad_parameters(inbox: Inbox, query: str) -> None:
    answer = await inbox.get(f"/threads?{query}")
    assert answer.status_code == 422
    assert answer.json()["name"] == "validation_error"


async def test_a_stop_answers_all_who_wait(inbox: Inbox) -> None:
    task = await begun(inbox, f"wait={LONG}")
    inbox.team.world.app.need(Waiters).close()
    assert (await within(task))["data"] == []


async def test_another_process_hears_of_the_change(database_url: str, tmp_path: Path) -> None:
    async with (
        inbox_world(database_url, tmp_path) as inbox,
        world(database_url, tmp_path, started=False) as other,
    ):
        one, two = inbox.team.world.app.need(Waiters), other.app.need(Waiters)
        key = (inbox.team.id, inbox.id)
        task = await begun(inbox, f"wait={LONG}")
        # Only the other process tells: what this one would hear of by itself is switched off.
        await one._notifier.stop()
        await two.start()
        try:
            await inbox.thread()
            async with transaction(other.pool) as conn:
                assert key in await lock(conn, [key])
            assert len((await within(task))["data"]) == 1
        finally:
            await two.stop()
            await one.stop()


async def test_a_command_wakes_those_who_wait(inbox: Inbox) -> None:
    """In its process nobody waits, and nothing runs after its commit."""
    waiters = inbox.team.world.app.need(Waiters)
    await waiters.start()
    # As in a process that has started nothing; this one still hears of the others.
    await waiters._notifier.stop()
    try:
        task = await begun(inbox, f"wait={LONG}")
        await inbox.thread()
        async with transaction(inbox.team.world.pool) as conn:
            assert await lock(conn, [(inbox.team.id, inbox.id)])
        assert len((await within(task))["data"]) == 1
    finally:
        await waiters.stop()


async def _change_in_vain(inbox: Inbox) -> None:
    async with transaction(inbox.team.world.pool) as conn:
        await changed(conn, [inbox.id])
        raise RuntimeError


async def test_a_change_that_is_rolled_back_tells_nobody(inbox: Inbox) -> None:
    told: list[Any] = []
    found = inbox.team.world.app.need(Waiters)
    await found.start()
    found._notifier._wake = told.append
    with pytest.raises(RuntimeError):
        await _change_in_vain(inbox)
    async with transaction(inbox.team.world.pool) as conn:
        await changed(conn, [inbox.new_id()])
    assert len(told) == 1
    await found.stop()


async def test_a_team_may_not_take_all_places(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "MOST_OF_TEAM", 2)
    async with inbox_world(database_url, tmp_path) as inbox:
        tasks = [await begun(inbox, f"wait={LONG}") for _ in range(2)]
        answer = await inbox.get(f"/threads?wait={LONG}")
        assert answer.status_code == 429
        assert answer.json()["name"] == "rate_limit_exceeded"
        assert answer.headers["retry-after"] == "1"
        # Who does not wait is served as ever, and so are other teams.
        assert (await inbox.get("/threads?wait=0")).status_code == 200
        quay = await an_inbox(await inbox.team.world.team("Quay"), "quay")
        tasks.append(await begun(quay, f"wait={LONG}"))
        inbox.team.world.app.need(Waiters).close()
        await asyncio.gather(*map(within, tasks))


async def test_who_has_gone_gives_the_place_back(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "STEP_SECONDS", 0.05)
    async with inbox_world(database_url, tmp_path) as inbox:
        task = await begun(inbox, f"wait={LONG}")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(lambda: waiting(inbox.team.world) == 0)


async def test_a_thousand_waiters_take_no_connection_and_only_those_concerned_read(pillarbox: World) -> None:
    found = pillarbox.app.need(Waiters)
    await found.start()
    ids = Ids(pillarbox.clock)
    inboxes = [ids.new() for _ in range(1000)]
    reads = dict.fromkeys(inboxes, 0)
    news: set[Any] = set()
    settled = asyncio.Event()

    async def wait(number: int) -> bool:
        inbox_id = inboxes[number]

        async def read() -> bool:
            reads[inbox_id] += 1
            if all(count >= 2 for count in reads.values()):
                settled.set()
            return inbox_id in news

        team = inboxes[number % 10]
        return await found.first(
            WaitingRequest(team_id=team, inbox_id=inbox_id, page=None, seconds=LONG, is_gone=lambda: False),
            read,
            bool,
        )

    tasks = [asyncio.create_task(wait(number)) for number in range(1000)]
    async with asyncio.timeout(30):
        await settled.wait()
        await until(lambda: all(count >= 2 for count in reads.values()))
    # Connecting wakes all of them once more.
    await asyncio.sleep(waiters.REST_SECONDS * 2)
    assert pillarbox.pool.get_size() - pillarbox.pool.get_idle_size() == 0
    before = dict(reads)
    news = set(inboxes[:300])
    async with transaction(pillarbox.pool) as conn:
        await changed(conn, news)
    async with asyncio.timeout(30):
        assert all(await asyncio.gather(*tasks[:300]))
    assert all(reads[inbox_id] == before[inbox_id] for inbox_id in inboxes[300:])
    assert INBOXES_EACH < 300
    found.close()
    assert not any(await asyncio.gather(*tasks[300:]))
    await found.stop()
    assert found._waiting == {}
    assert not found._of_team
