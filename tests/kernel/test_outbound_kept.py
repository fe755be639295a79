"""POST requests over kept connections: where an answer ends, what may be used again (RFC 9112, 6.3, 9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from kit.http_outside import LOOPBACK
from kit.receiver import Answer, Arrival, Receiver, receiver, status
from pillarbox.kernel.network.fetch_result import FetchError, HttpAnswer, HttpLimits
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.network.web_address import parse_url

LIMITS = HttpLimits(max_bytes=65_536, connect=0.4, total=0.8, cut=True, kept=0.2)


@asynccontextmanager
async def posting(*answers: Answer) -> AsyncIterator[tuple[Receiver, Callable[[], Awaitable[HttpAnswer]]]]:
    """A receiver with these answers, and a call that posts to it."""
    async with receiver() as at:
        at.answers(*answers)
        outbound = Outbound(allow=LOOPBACK)
        target = parse_url(at.url + "?a=b")
        try:
            yield at, lambda: outbound.post(target, {"x-number": "1"}, b"{}", LIMITS)
        finally:
            await outbound.close()


def later(*parts: bytes, closed: bool = False) -> Answer:
    """These parts, with a moment between them; and the end of the connection, if asked for."""

    async def said(arrival: Arrival) -> bytes | None:
        for part in parts[:-1]:
            arrival.writer.write(part)
            await asyncio.sleep(0.03)
        if not closed:
            return parts[-1]
        arrival.writer.write(parts[-1])
        return None

    return said


OK = b"HTTP/1.1 200 OK\r\n"

ENDS = {
    "length": (status(200, b"said"), b"said", True),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nsa\r\n2\r\nid\r\n0\r\n\r\n", b"said", True),
    "a byte at a time": (later(*[bytes([byte]) for byte in b"HTTP/1.1 204 \r\n\r\n"]), b"", True),
    "the connection's end": (later(OK + b"\r\nsa", b"id", closed=True), b"said", False),
    "HTTP/1.0": (later(b"HTTP/1.0 200 OK\r\n\r\nsaid", closed=True), b"said", False),
    "asked to close": (status(200, b"said", "Connection: close"), b"said", False),
    "bare line feeds": (b"HTTP/1.1 200 OK\nContent-Length: 4\n\nsaid", b"said", True),
    "interim answers": (
        b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 On\r\nA: b\r\n\r\n" + status(200, b"said"),
        b"said",
        True,
    ),
    "no body with a length": (b"HTTP/1.1 204 No\r\nContent-Length: 4\r\n\r\n", b"", False),
}


@pytest.mark.parametrize(("said", "body", "kept"), ENDS.values(), ids=ENDS)
async def test_an_answer_ends_where_it_says(said: Answer, body: bytes, kept: bool) -> None:
    """And its connection is used again where nothing speaks against it."""
    async with posting(said) as (at, post):
        for _ in range(3):
            found = await post()
            assert (found.status // 100, found.body, found.cut) == (2, body, False)
        assert (len(at.arrivals), at.connections) == (3, 1 if kept else 3)
        assert at.arrivals[0].target == "POST /in?a=b HTTP/1.1"
        assert at.arrivals[0].headers == {
            "host": f"127.0.0.1:{at.port}",
            "x-number": "1",
            "content-length": "2",
        }


SURPLUS = {
    "204 and a body": (b"HTTP/1.1 204 No Content\r\n\r\nsaid", 204),
    "204, its length and a body": (b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nsaid", 204),
    "204 in chunks": (b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsaid\r\n0\r\n\r\n", 204),
    "304 and a body": (b"HTTP/1.1 304 Same\r\n\r\n<p>said</p>", 304),
    "more than its length": (status(200, b"said") + b"and more", 200),
    "a second answer": (status(201) + status(500), 201),
}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(("said", "code"), SURPLUS.values(), ids=SURPLUS)
async def test_what_follows_an_answer_neither_spoils_it_nor_the_next(
    said: bytes, code: int, apart: bool
) -> None:
    """It may come in the same packet or in one of its own: a `204 No Content` with content is a success."""
    head, _, rest = said.partition(b"\r\n\r\n")
    parts = later(head + b"\r\n\r\n", rest) if apart and code in (204, 304) else said
    async with posting(parts, status(202)) as (at, post):
        assert (await post()).status == code
        assert (await post()).status == 202
        at.answers(parts)
        for _ in range(3):
            assert (await post()).status == code
            await asyncio.sleep(0.05)
        assert at.connections >= 4


async def nothing(_: Arrival) -> bytes | None:
    return None


async def endless_trailers(arrival: Arrival) -> bytes | None:
    arrival.writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n")
    while not arrival.writer.is_closing():
        arrival.writer.write(b"X: " + b"x" * 8192 + b"\r\n")
        await arrival.writer.drain()
    return None


@pytest.mark.parametrize(
    "said",
    [
        nothing,
        later(b"HTTP/1.1 2", closed=True),
        later(status(200, b"said")[:-1], closed=True),
        later(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nsa\r\n", closed=True),
        b"HTTP/1.1 abc\r\n\r\n",
        OK + b"A" * 40_000,
        OK + b"A: b\r\n" * 10_000,
    ],
)
async def test_half_an_answer_is_none(said: Answer) -> None:
    async with posting(said) as (at, post):
        with pytest.raises(FetchError) as failure:
            await post()
        assert failure.value.kind == "protocol"
        assert len(at.arrivals) == 1, "on a new connection nothing is repeated"


async def test_nobody_is_followed_to_another_protocol() -> None:
    async with posting(b"HTTP/1.1 101 On\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nx") as (at, post):
        for connections in (1, 2):
            assert (await post()).status == 101
            assert at.connections == connections


async def test_no_more_is_read_than_is_wanted() -> None:
    """Not of the body, and not of what stands around it."""
    async with posting(status(200, b"x" * 70_000), endless_trailers) as (at, post):
        assert ((first := await post()).body, first.cut) == (b"x" * 65_536, True)
        assert ((second := await post()).body, second.cut) == (b"ok", True)
        assert at.connections == 2


async def test_a_kept_connection_that_says_nothing_whole_is_replaced_once() -> None:
    for failing in (nothing, later(b"HTTP/1.1 2", closed=True), b"said\r\n\r\n"):
        async with posting(status(200), failing, status(203)) as (at, post):
            assert (await post()).status == 200
            assert (await post()).status == 203
            assert (len(at.arrivals), at.connections) == (3, 2)


async def test_half_an_answer_on_a_kept_connection_is_not_asked_for_twice() -> None:
    async with posting(status(200), later(status(200, b"said")[:-1], closed=True)) as (at, post):
        await post()
        with pytest.raises(FetchError):
            await post()
        assert len(at.arrivals) == 2


async def test_connections_that_nobody_uses_are_closed() -> None:
    async with posting(status(200)) as (at, post):
        await asyncio.gather(post(), post(), post())
        assert at.connections == 3
        async with asyncio.timeout(10):
            for arrival in at.arrivals:
                await arrival.writer.wait_closed()
        await post()
        assert at.connections == 4


async def test_a_caller_that_gives_up_ends_the_connection() -> None:
    async def late(_: Arrival) -> bytes:
        await asyncio.sleep(1)
        return status(200)

    async with posting(status(200), late, status(202)) as (at, post):
        await post()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await post()
        assert (await post()).status == 202
        assert at.connections == 2


def test_the_same_on_the_loop_that_workers_have() -> None:
    async def ask() -> None:
        async with posting(*[said for said, _ in SURPLUS.values()], status(202)) as (at, post):
            for _ in range(len(SURPLUS) + 3):
                assert (await post()).status < 500
            assert at.connections == 1 + len(SURPLUS)

    uvloop.run(ask())
