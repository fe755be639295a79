"""Many requests that wait, and that come, or are woken, in the same moment (docs/decisions/0091)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from inboxes.waiting.test_waiting import LONG, telling_world, until, waiting
from kit.http_client import http_client
from kit.inbox_rows import Inbox, inbox_world
from pillarbox.inboxes.threads import lists
from pillarbox.inboxes.waiting import shared_readings, waiters
from pillarbox.inboxes.waiting.shared_readings import READS_AT_ONCE, SharedReadings
from pillarbox.kernel.wire.problems import NotFound, ServerOverloaded

MANY = 600


@asynccontextmanager
async def asking(inbox: Inbox, query: str) -> AsyncIterator[list[asyncio.Task[httpx.Response]]]:
    """As many requests for a list of threads at once, each with a connection of its own."""
    team, every = inbox.team, httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with http_client(team.world.url, team.token, limits=every) as client:
        path = f"{inbox.url}/threads?{query}"
        yield [asyncio.create_task(client.get(path)) for _ in range(MANY)]


async def test_who_comes_before_a_reading_begins_takes_part(database_url: str) -> None:
    readings, begun, go = SharedReadings(), Counter[str](), asyncio.Event()

    def read(name: str) -> Any:
        async def reading() -> tuple[str, int]:
            begun[name] += 1
            number = begun[name]
            await go.wait()
            return name, number

        return reading

    first = [asyncio.create_task(readings.read("a", read("a"))) for _ in range(50)]
    await until(lambda: begun["a"] == 1)
    # It runs, and may have read what was true before these came.
    later = [asyncio.create_task(readings.read("a", read("a"))) for _ in range(50)]
    others = [asyncio.create_task(readings.read(name, read(str(name)))) for name in range(20)]
    await until(lambda: begun.total() == READS_AT_ONCE)
    first[0].cancel()
    go.set()
    assert set(await asyncio.gather(*first[1:])) == {("a", 1)}
    assert set(await asyncio.gather(*later)) == {("a", 2)}
    assert await asyncio.gather(*others) == [(str(name), 1) for name in range(20)]
    assert begun["a"] == 2


async def test_what_a_reading_raises_is_for_all_who_took_part() -> None:
    readings = SharedReadings()

    async def fails() -> None:
        raise NotFound("Inbox")

    found = await asyncio.gather(*(readings.read("a", fails) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in found] == [NotFound] * 3
    # And whoever comes next begins anew.
    with pytest.raises(NotFound):
        await readings.read("a", fails)


async def test_more_than_may_wait_are_told_when_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_readings, "MOST", 2)
    readings, go = SharedReadings(), asyncio.Event()
    tasks = [asyncio.create_task(readings.read("a", go.wait)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(ServerOverloaded) as refused:
        await readings.read("b", go.wait)
    assert refused.value.headers == {"retry-after": "1"}
    go.set()
    assert await asyncio.gather(*tasks) == [True, True]


async def test_those_who_come_at_once_all_wait_and_wake_by_few_readings(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than may wait for a connection of the pool."""
    monkeypatch.setattr(waiters, "MOST_OF_TEAM", MANY)
    read, page = Counter[str](), lists.thread_page

    async def counted(*given: Any) -> Any:
        read["pages"] += 1
        return await page(*given)

    monkeypatch.setattr(lists, "thread_page", counted)
    async with telling_world(database_url, tmp_path) as inbox:
        thread = await inbox.thread(is_read=True)
        async with asking(inbox, f"read=false&wait={LONG}") as tasks:
            await until(lambda: waiting(inbox.team.world) == MANY or any(task.done() for task in tasks))
            assert not Counter(task.result().status_code for task in tasks if task.done())
            await asyncio.sleep(waiters.REST_SECONDS * 2)
            read.clear()
            assert (await thread.patch(read=False)).status_code == 200
            answers = await asyncio.gather(*tasks)
        assert Counter(answer.status_code for answer in answers) == {200: MANY}
        assert {answer.json()["data"][0]["id"] for answer in answers} == {str(thread.id)}
        assert read["pages"] <= 5


@pytest.mark.slow
async def test_connection_pool_get_every_answer(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over sockets of the test's own, because HTTP clients have pools that may stand still by themselves."""
    monkeypatch.setattr(waiters, "MOST_OF_TEAM", MANY)
    async with telling_world(database_url, tmp_path) as inbox:
        thread, team = await inbox.thread(is_read=True), inbox.team
        host, port = team.world.url.removeprefix("http://").split(":")
        head = f"host: {host}\r\nauthorization: Bearer {team.token}\r\n\r\n"
        wanted = f"GET {inbox.url}/threads?read=false&wait={LONG} HTTP/1.1\r\n{head}".encode()
        sockets = [await asyncio.open_connection(host, int(port)) for _ in range(MANY)]

        async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
            writer.write(wanted)
            fields = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = fields.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            return fields.split(b" ", 2)[1]

        async with asyncio.timeout(60):
            for _ in range(4):
                tasks = [asyncio.create_task(asked(*one)) for one in sockets]
                await until(lambda: waiting(team.world) == MANY)
                assert (await thread.patch(read=False)).status_code == 200
                assert Counter(await asyncio.gather(*tasks)) == {b"200": MANY}
                assert (await thread.patch(read=True)).status_code == 200
        for _, writer in sockets:
            writer.close()


async def test_a_team_with_too_many_at_once_is_told_when_to_come_again(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "MOST_OF_TEAM", 20)
    async with inbox_world(database_url, tmp_path) as inbox:
        async with asking(inbox, f"wait={LONG}") as tasks:
            await until(lambda: sum(task.done() for task in tasks) == MANY - 20)
            refused = [task.result() for task in tasks if task.done()]
            assert {(one.status_code, one.headers["retry-after"]) for one in refused} == {(429, "1")}
            inbox.team.world.app.need(waiters.Waiters).close()
            answers = await asyncio.gather(*tasks)
        assert Counter(answer.status_code for answer in answers) == {200: 20, 429: MANY - 20}
