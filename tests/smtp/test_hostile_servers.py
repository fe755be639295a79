"""Servers that send whatever they like: no crash, no hang, no false delivery (OUT-18)."""

from __future__ import annotations

import asyncio
import random
from typing import cast

import pytest

from pillarbox.mail.smtp.client import ConnectFailed, SmtpConnection, Timeouts, TlsMode

HASTY = Timeouts(
    connect=1, banner=0.02, hello=0.02, mail=0.02, rcpt=0.02, data=0.02, block=0.02, final=0.02, quit=0.01
)
CONTENT = b"Subject: x\r\n\r\nbody\r\n"
SESSIONS = 2000
PIECES = [
    b"220 mx ESMTP\r\n",
    b"250 ok\r\n",
    b"250-mx\r\n250-PIPELINING\r\n250-SIZE 100\r\n250 STARTTLS\r\n",
    b"250-endless\r\n",
    b"354 go\r\n",
    b"421 4.7.0 bye\r\n",
    b"550 5.1.1 no\r\n",
    b"120 wait\r\n",
    b"250\n",
    b"\r\n",
    b"\r",
    b"\x00\x00\x00",
    b"\xff\xfe250 ok\r\n",
    b"2",
    b"25x ok\r\n",
    b"999999 ok\r\n",
    b"250 " + b"a" * 3000 + b"\r\n",
    "250 naïve \u202e\r\n".encode(),
]


class Hostile(asyncio.Protocol):
    """Answers each packet with random pieces, or hangs up."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._act(greeting=self._dice.random() < 0.7)

    def data_received(self, data: bytes) -> None:
        self._act(greeting=False)

    def _act(self, greeting: bool) -> None:
        assert self._transport is not None
        fate = self._dice.random()
        if greeting:
            self._transport.write(PIECES[0])
        elif fate < 0.1:
            self._transport.abort()
        elif fate < 0.2:
            self._transport.close()
        elif fate < 0.6:
            self._transport.write(self._dice.choice(PIECES[1:7]))
        elif fate < 0.97:
            self._transport.write(b"".join(self._dice.choices(PIECES, k=self._dice.randint(1, 4))))


async def one_session(port: int, dice: random.Random) -> str:
    connection = await SmtpConnection.open(
        ("127.0.0.1", port),
        server_name="mx.test",
        hello="h.test",
        tls=dice.choice([TlsMode.NONE, TlsMode.OPPORTUNISTIC]),
        timeouts=HASTY,
    )
    if isinstance(connection, ConnectFailed):
        assert connection.reply.code >= 220
        return "no session"
    for _ in range(3):
        if not connection.is_reusable:
            break
        done = await connection.send("a@harbor.test", ["x@y.test", "z@y.test"], CONTENT)
        assert len(done.answers) == 2
        assert all(answer.reply.code >= 200 for answer in done.answers)
    await connection.quit()
    assert connection.closed
    return "session"


async def test_out_18_two_thousand_sessions_of_garbage() -> None:
    """OUT-18."""
    seed = 20_260
    loop = asyncio.get_running_loop()
    troubles: list[object] = []
    loop.set_exception_handler(lambda _, context: troubles.append(context))
    server_dice = random.Random(seed)
    server = await loop.create_server(lambda: Hostile(server_dice), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    numbers = iter(range(SESSIONS))
    ends: list[str] = []

    async def worker() -> None:
        for number in numbers:
            ends.append(await one_session(port, random.Random(seed + number)))

    async with asyncio.timeout(60):
        await asyncio.gather(*(worker() for _ in range(50)))
    server.close()
    assert len(ends) == SESSIONS
    assert set(ends) == {"session", "no session"}
    assert troubles == []


@pytest.mark.parametrize(
    "flood",
    [b"250-more\r\n", b"a" * 1000, b"250 ok\r\n", b"\r\n"],
    ids=["lines", "one-line", "answers", "empty"],
)
async def test_out_18_a_server_that_never_stops_talking_is_cut_off(flood: bytes) -> None:
    """OUT-18: long before the time-out."""
    gone = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"220 mx\r\n")
            await reader.readline()
            while True:
                writer.write(flood * 20)
                await writer.drain()
        except OSError:
            gone.set()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    opened = await SmtpConnection.open(address, server_name="mx.test", hello="h.test", tls=TlsMode.NONE)
    if isinstance(opened, SmtpConnection):
        done = await opened.send("a@harbor.test", ["x@y.test"], CONTENT)
        assert done.answers[0].reply.code == 421
    await asyncio.wait_for(gone.wait(), 5)
    server.close()
