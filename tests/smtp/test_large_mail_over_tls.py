"""Mail of every size arrives over every kind of connection, however the server reads, on both event loops."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from kit.blocking_peer import (
    NOT_TO_THE_END,
    ONE_OCTET,
    SLOWLY,
    TLS_KINDS,
    BlockingPeer,
    Reading,
    TlsKind,
    blocking_peer,
)
from kit.smtp_listener import on_each_loop
from kit.smtp_sink import TlsAuthority
from pillarbox.mail.smtp.client import Connection, Timeouts, Transaction
from pillarbox.mail.smtp.content import AHEAD, BLOCK, dot_stuffed
from pillarbox.mail.smtp.tls import TlsMode

AUTHORITY = TlsAuthority()
MODES = {"clear": TlsMode.NONE, "starttls": TlsMode.REQUIRED, "implicit": TlsMode.IMPLICIT}
LINE = b"." + b"0123456789abcdef" * 4 + b"\r\n"
SIZES = [1_000, AHEAD, AHEAD + 67, 200_000, BLOCK, 2_000_000, 40_000_000]


def message(size: int) -> bytes:
    return b"Subject: size\r\n\r\n" + LINE * (size // len(LINE))


async def send(peer: BlockingPeer, content: bytes, timeouts: Timeouts | None = None) -> Transaction:
    """One transaction on a connection of its own."""
    connection = await Connection.open(
        ("127.0.0.1", peer.port),
        server_name="mx.sink.test",
        hello="mx.pillar.example",
        tls=MODES[peer.tls],
        trust=AUTHORITY.trust(),
        timeouts=timeouts,
    )
    assert isinstance(connection, Connection), connection
    assert (connection.tls is not None) == (peer.tls != "clear")
    done = await connection.send("ada@harbor.example", ["bob@quay.example"], content)
    if connection.is_reusable:
        again = await connection.send("ada@harbor.example", ["bob@quay.example"], message(100))
        assert again.final is not None
    await connection.quit()
    return done


async def arrives(tls: TlsKind, size: int, reading: Reading) -> None:
    content = message(size)
    on_the_wire = dot_stuffed(content) + b".\r\n"
    with blocking_peer(tls, reading, AUTHORITY) as peer:
        done = await asyncio.wait_for(send(peer, content), 60)
        assert done.final is not None, done.answers
        assert done.final.code == 250
        first, second = peer.received
        assert first == (len(on_the_wire), hashlib.sha256(on_the_wire).hexdigest())
        assert second.octets < 200


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop
async def test_a_mail_arrives_at_a_server_that_reads_at_once(tls: TlsKind, size: int) -> None:
    """OUT-18: each size within the limits."""
    await arrives(tls, size, Reading())


@pytest.mark.parametrize("size", [1_000, 200_000, 2_000_000])
@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop
async def test_a_mail_arrives_at_a_server_that_reads_slowly(tls: TlsKind, size: int) -> None:
    await arrives(tls, size, SLOWLY)


@pytest.mark.parametrize("size", [1_000, 200_000])
@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop
async def test_a_mail_arrives_at_a_server_that_reads_octet_by_octet(tls: TlsKind, size: int) -> None:
    await arrives(tls, size, ONE_OCTET)


@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop
async def test_a_server_that_stops_reading_is_given_up_before_the_final_dot(tls: TlsKind) -> None:
    """OUT-18, RFC 5321 4.5.3.2.5: the time-out of a data block ends the session; the mail may go again."""
    with blocking_peer(tls, NOT_TO_THE_END, AUTHORITY) as peer:
        done = await asyncio.wait_for(send(peer, message(20_000_000), Timeouts(block=0.3)), 30)
        assert (done.final, done.uncertain, peer.received) == (None, False, [])
        [answer] = done.answers
        assert (answer.reply.code, answer.reply.text) == (421, "the server did not answer in time")


@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop
async def test_the_fence_is_asked_when_the_network_has_the_message(tls: TlsKind) -> None:
    """What the server does not read yet is not in memory of ours when the final dot is decided: a dot that
    is allowed now may not leave minutes later."""
    asked: list[int] = []
    with blocking_peer(tls, SLOWLY, AUTHORITY) as peer:
        connection = await Connection.open(
            ("127.0.0.1", peer.port),
            server_name="mx.sink.test",
            hello="mx.pillar.example",
            tls=MODES[tls],
            trust=AUTHORITY.trust(),
        )
        assert isinstance(connection, Connection)
        wire = connection._wire

        def fence() -> bool:
            asked.append(wire.unsent)
            return True

        done = await connection.send("", ["bob@quay.example"], message(3_000_000), before_final_dot=fence)
        await connection.quit()
        assert done.final is not None
        assert asked == [0]
