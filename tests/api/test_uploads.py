"""Bodies that come slowly, or not at all, keep nobody else's mail waiting (docs/decisions/0032)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from kit import probe_routes
from kit.client import HttpServer, http_server
from pillarbox.kernel.http.pipeline import HttpSettings
from pillarbox.kernel.http.protocol import ConnectionLimits, Protocol
from pillarbox.kernel.http.uploads import UploadLimits, Uploads

KIB = 1024
MIB = 1024 * KIB
BODY = b'{"a":"' + b"x" * (600 * KIB) + b'"}'
"""It needs several reads, so it is a body that comes in pieces."""

SMALL = UploadLimits(total=MIB, of_address=MIB, of_team=MIB * 3 // 4, wait_timeout=0.1)


PATIENT = 1e9
"""With so much time nobody is too slow."""


class Client:
    """One connection with one request, of which the body comes as the test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, seconds: float = 5) -> bytes:
        """All that the server says until it closes the connection."""
        return await asyncio.wait_for(self.reader.read(), seconds)


class Clients:
    """Raw connections to one server; all are closed with it."""

    def __init__(self, api: HttpServer) -> None:
        self.api = api
        self.opened: list[Client] = []

    async def ask(
        self, token: str | None, size: int | None, body: bytes = b"", path: str = "/probe"
    ) -> Client:
        """A request whose body begins so; without `size` it is chunked."""
        lines = [f"POST {path} HTTP/1.1", "Host: x", "Connection: close"]
        lines += [f"Authorization: Bearer {token}"] if token else []
        lines += ["Transfer-Encoding: chunked" if size is None else f"Content-Length: {size}", "", ""]
        client = Client(*await asyncio.open_connection("127.0.0.1", self.api.port))
        self.opened.append(client)
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if size is None and body else body
        await client.send("\r\n".join(lines).encode() + chunk)
        return client

    async def mail(self, token: str, seconds: float = 5) -> bytes:
        """The answer to a whole body, which must come soon."""
        client = await asyncio.wait_for(self.ask(token, len(BODY), BODY), seconds)
        return await client.answer(seconds)


@asynccontextmanager
async def clients(
    database_url: str, limits: UploadLimits, protocol: type[Protocol] = Protocol
) -> AsyncIterator[Clients]:
    settings = HttpSettings(rate_limit=0, uploads=limits)
    async with http_server(database_url, probe_routes, settings=settings, protocol=protocol) as api:
        made = Clients(api)
        api.services.add(probe_routes.Gate())
        try:
            yield made
        finally:
            for client in made.opened:
                client.writer.close()


def refusal(answer: bytes) -> str:
    """What a refused upload hears, in the contract's shape."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 "), answer
    assert b"connection: close" in head
    assert b"retry-after: 1" in head
    parsed = json.loads(body)
    assert list(parsed) == ["statusCode", "message", "name"]
    assert parsed["name"] == "service_unavailable"
    return str(parsed["message"])


async def test_callers_who_are_not_known_hold_nothing(database_url: str) -> None:
    """Heads alone, and stalled halves, without a key and with a wrong one."""
    async with clients(database_url, SMALL) as callers:
        team = await callers.api.team()
        strangers = [await callers.ask(token, None) for token in (None, "re_wrong") for _ in range(10)]
        strangers += [await callers.ask(None, None, b"x" * 192 * KIB) for _ in range(20)]
        assert (await callers.mail(team.token)).startswith(b"HTTP/1.1 200 ")
        assert not any(stranger.reader.at_eof() for stranger in strangers)


async def test_callers_who_are_not_known_are_not_heard_for_long(database_url: str) -> None:
    """The size comes before the key, so their bodies are counted; but not for the minute of the others."""
    async with clients(database_url, UploadLimits(unknown_seconds=0.2)) as callers:
        silent = await callers.ask(None, None, b"x" * 100)
        answer = await silent.reader.readuntil(b"}")
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close" in answer
        assert b'"name":"missing_api_key"' in answer
        large = await callers.ask("re_wrong", None, b"x" * 1001, "/probe/small")
        assert (await large.reader.readuntil(b"}")).startswith(b"HTTP/1.1 413 ")
        whole = await callers.ask(None, None, b"x", "/probe/small")
        await whole.send(b"0\r\n\r\n")
        assert (await whole.answer()).startswith(b"HTTP/1.1 401 ")


async def test_what_is_only_announced_holds_nothing(database_url: str) -> None:
    async with clients(database_url, SMALL) as callers:
        busy, other = await callers.api.team("Busy"), await callers.api.team()
        for _ in range(8):
            await callers.ask(busy.token, 50 * MIB, b"x" * KIB)
            await callers.ask(busy.token, None, b"x" * KIB)
        assert (await callers.mail(other.token)).startswith(b"HTTP/1.1 200 ")
        assert (await callers.mail(busy.token)).startswith(b"HTTP/1.1 200 ")


async def test_a_team_holds_its_share_and_no_more(database_url: str) -> None:
    """What has come of its bodies waits for its own memory, and others go on at once."""
    limits = UploadLimits(total=2 * MIB, of_address=2 * MIB, of_team=MIB, wait_timeout=60)
    async with clients(database_url, limits) as callers:
        busy, other = await callers.api.team("Busy"), await callers.api.team()
        for _ in range(8):
            await callers.ask(busy.token, MIB, b"x" * 512 * KIB)
        assert (await callers.mail(other.token)).startswith(b"HTTP/1.1 200 ")


async def test_the_slowest_upload_goes_when_others_wait(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two teams have filled more than half of the memory and stall: a third one waits for about a second."""
    begun = watched(monkeypatch, "begin")
    async with clients(database_url, SMALL) as callers:
        teams = [await callers.api.team(name) for name in ("One", "Two", "Three")]
        stalled = [await callers.ask(team.token, 360 * KIB, b"x" * 310 * KIB) for team in teams[:2]]
        for _ in stalled:
            await asyncio.wait_for(begun.get(), 5)
        assert (await callers.mail(teams[2].token)).startswith(b"HTTP/1.1 200 ")
        answers = [asyncio.ensure_future(client.reader.readuntil(b"}")) for client in stalled]
        done, rest = await asyncio.wait(answers, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        assert "too slow" in refusal(done.pop().result())
        assert rest, "one of them gave room enough"
        rest.pop().cancel()


@pytest.mark.parametrize("alone", [True, False], ids=["of one team", "of two teams"])
async def test_who_fills_a_share_and_trickles_goes_when_others_wait(
    database_url: str, monkeypatch: pytest.MonkeyPatch, alone: bool
) -> None:
    """It never stalls and would be complete in time; mail of its own team, or of all others, waits for it."""
    begun = watched(monkeypatch, "begin")
    limits = replace(SMALL, patience=0.3, soon=0.3, body_seconds=PATIENT)
    async with clients(database_url, limits) as callers:
        teams = [await callers.api.team(name) for name in ("One", "Two", "Three")]
        size, senders = (700 * KIB, teams[:1]) if alone else (500 * KIB, teams[:2])
        slow = [await callers.ask(team.token, size, b"x" * (size - 100 * KIB)) for team in senders]
        for _ in slow:
            await asyncio.wait_for(begun.get(), 5)
        trickles = [asyncio.ensure_future(trickle(client)) for client in slow]
        other = teams[0 if alone else 2]
        assert (await callers.mail(other.token, 10)).startswith(b"HTTP/1.1 200 ")
        done, _ = await asyncio.wait(trickles, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        assert "too slow" in refusal(done.pop().result())
        for one in trickles:
            one.cancel()


async def trickle(client: Client) -> bytes:
    """Send a little again and again; the answer that ends it."""
    answer = asyncio.ensure_future(client.reader.readuntil(b"}"))
    while not answer.done():
        await client.send(b"x" * 10)
        await asyncio.wait([answer], timeout=0.1)
    return answer.result()


async def test_large_bodies_are_all_completed(database_url: str) -> None:
    """Together they are too large, announced or not: some wait halfway, one goes on."""
    limits = UploadLimits(total=MIB, of_address=MIB, of_team=MIB, body_seconds=PATIENT)
    async with clients(database_url, limits) as callers:
        team = await callers.api.team()
        whole = b'{"a":"' + b"x" * (900 * KIB) + b'"}'
        bodies = [await callers.ask(team.token, len(whole), whole[: 400 * KIB]) for _ in range(2)]
        bodies.append(await callers.ask(team.token, None, whole[: 400 * KIB]))
        await asyncio.gather(*[client.send(whole[400 * KIB :]) for client in bodies[:2]])
        rest = whole[400 * KIB :]
        await bodies[2].send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest))
        for client in bodies:
            assert (await client.answer()).startswith(b"HTTP/1.1 200 ")


async def test_the_time_of_a_body_goes_on_while_it_waits(database_url: str) -> None:
    class Hasty(Protocol):
        limits = ConnectionLimits(body_seconds=0.6)

    limits = UploadLimits(total=768 * KIB, of_address=MIB, of_team=MIB)
    async with clients(database_url, limits, Hasty) as callers:
        team = await callers.api.team()
        gate = callers.api.services.use(probe_routes.Gate)
        working = await callers.ask(team.token, len(BODY), BODY, "/probe/slow")
        await asyncio.wait_for(gate.entered.wait(), 5)
        waiting = await callers.ask(team.token, MIB, BODY)
        assert (await waiting.answer()).startswith(b"HTTP/1.1 408 ")
        gate.open.set()
        assert (await working.answer()).startswith(b"HTTP/1.1 200 ")
        assert (await callers.mail(team.token)).startswith(b"HTTP/1.1 200 ")


async def test_who_waits_too_long_for_room_is_told(database_url: str) -> None:
    limits = UploadLimits(total=768 * KIB, of_address=MIB, of_team=MIB, waiting_seconds=0.2)
    async with clients(database_url, limits) as callers:
        team = await callers.api.team()
        gate = callers.api.services.use(probe_routes.Gate)
        working = await callers.ask(team.token, len(BODY), BODY, "/probe/slow")
        await asyncio.wait_for(gate.entered.wait(), 5)
        waiting = await callers.ask(team.token, len(BODY), BODY)
        assert "no memory" in refusal(await waiting.reader.readuntil(b"}"))
        gate.open.set()
        assert (await working.answer()).startswith(b"HTTP/1.1 200 ")


async def test_so_many_uploads_at_once(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than that are refused; who leaves makes room."""
    begun, ended = watched(monkeypatch, "begin"), watched(monkeypatch, "end")
    async with clients(database_url, UploadLimits(uploads_of_team=2, body_seconds=PATIENT)) as callers:
        team, other = await callers.api.team(), await callers.api.team("Other")
        first, second = [await callers.ask(team.token, MIB, BODY[: 512 * KIB]) for _ in range(2)]
        for _ in (first, second):
            await asyncio.wait_for(begun.get(), 5)
        assert "Too many uploads" in refusal(await callers.mail(team.token))
        assert (await callers.mail(other.token)).startswith(b"HTTP/1.1 200 ")
        await asyncio.wait_for(ended.get(), 5)
        small = await callers.ask(team.token, 2, b"{}")
        assert (await small.answer()).startswith(b"HTTP/1.1 200 "), "what comes at once is no upload"
        first.writer.close()
        await asyncio.wait_for(ended.get(), 5)
        assert (await callers.mail(team.token)).startswith(b"HTTP/1.1 200 ")


def watched(monkeypatch: pytest.MonkeyPatch, name: str) -> asyncio.Queue[None]:
    """Gets an item whenever that method of `Uploads` has returned."""
    seen: asyncio.Queue[None] = asyncio.Queue()
    done = getattr(Uploads, name)

    def telling(*args: Any) -> Any:
        answer = done(*args)
        seen.put_nowait(None)
        return answer

    monkeypatch.setattr(Uploads, name, telling)
    return seen
