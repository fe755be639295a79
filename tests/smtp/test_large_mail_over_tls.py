"""Mail of every size arrives over every kind of connection, however the server reads, on both event loops."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.smtp import SMTP

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
from kit.node_smtp_server import node_smtp_server
from kit.postfix import postfix
from kit.smtp_listener import on_each_loop_in_time
from kit.smtp_sink import Sink, TlsAuthority
from pillarbox.mail.smtp.client import SmtpConnection, Timeouts, Transaction
from pillarbox.mail.smtp.content import AHEAD, BLOCK, dot_stuffed
from pillarbox.mail.smtp.tls import TlsMode

pytestmark = pytest.mark.sweep

AUTHORITY = TlsAuthority()
MODES = {"clear": TlsMode.NONE, "starttls": TlsMode.REQUIRED, "implicit": TlsMode.IMPLICIT}
LINE = b"." + b"0123456789abcdef" * 4 + b"\r\n"
SIZES = [1_000, AHEAD, AHEAD + 67, 200_000, BLOCK, 2_000_000, 40_000_000]


def message(size: int) -> bytes:
    return b"Subject: size\r\n\r\n" + LINE * (size // len(LINE))


async def send(peer: BlockingPeer, content: bytes, timeouts: Timeouts | None = None) -> Transaction:
    """One transaction on a connection of its own."""
    connection = await SmtpConnection.open(
        ("127.0.0.1", peer.port),
        server_name="mx.sink.test",
        hello="mx.pillar.example",
        tls=MODES[peer.tls],
        trust=AUTHORITY.trust(),
        timeouts=timeouts,
    )
    assert isinstance(connection, SmtpConnection), connection
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
@on_each_loop_in_time
async def test_a_mail_arrives_at_a_server_that_reads_at_once(tls: TlsKind, size: int) -> None:
    """OUT-18: each size within the limits."""
    await arrives(tls, size, Reading())


@pytest.mark.parametrize("size", [1_000, 200_000, 2_000_000])
@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop_in_time
async def test_a_mail_arrives_at_a_server_that_reads_slowly(tls: TlsKind, size: int) -> None:
    await arrives(tls, size, SLOWLY)


@pytest.mark.parametrize("size", [1_000, 200_000])
@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop_in_time
async def test_a_mail_arrives_at_a_server_that_reads_octet_by_octet(tls: TlsKind, size: int) -> None:
    await arrives(tls, size, ONE_OCTET)


@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop_in_time
async def test_a_server_that_stops_reading_is_given_up_before_the_final_dot(tls: TlsKind) -> None:
    """OUT-18, RFC 5321 4.5.3.2.5: the time-out of a data block ends the session; the mail may go again."""
    with blocking_peer(tls, NOT_TO_THE_END, AUTHORITY) as peer:
        done = await asyncio.wait_for(send(peer, message(20_000_000), Timeouts(block=0.3)), 30)
        assert (done.final, done.uncertain, peer.received) == (None, False, [])
        [answer] = done.answers
        assert (answer.reply.code, answer.reply.text) == (421, "the server did not answer in time")


@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop_in_time
async def test_the_fence_is_asked_when_the_network_has_the_message(tls: TlsKind) -> None:
    """What the server does not read yet is not in memory of ours when the final dot is decided: a dot that
    is allowed now may not leave minutes later."""
    asked: list[int] = []
    with blocking_peer(tls, SLOWLY, AUTHORITY) as peer:
        connection = await SmtpConnection.open(
            ("127.0.0.1", peer.port),
            server_name="mx.sink.test",
            hello="mx.pillar.example",
            tls=MODES[tls],
            trust=AUTHORITY.trust(),
        )
        assert isinstance(connection, SmtpConnection)
        wire = connection._wire

        def fence() -> bool:
            asked.append(wire.unsent)
            return True

        done = await connection.send("", ["bob@quay.example"], message(3_000_000), before_final_dot=fence)
        await connection.quit()
        assert done.final is not None
        assert asked == [0]


# Peers --------------------------------------------------------------------------------------------------


async def opportunistic(port: int) -> SmtpConnection:
    """A session as direct delivery and relays open it."""
    opened = await SmtpConnection.open(
        ("127.0.0.1", port), server_name="mx.sink.test", hello="mx.pillar.example", tls=TlsMode.OPPORTUNISTIC
    )
    assert isinstance(opened, SmtpConnection), opened
    assert opened.tls is not None
    return opened


class Keeper:
    """What aiosmtpd took."""

    def __init__(self) -> None:
        self.contents: list[bytes] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.contents.append(envelope.content)
        return "250 2.0.0 taken"


@contextmanager
def aiosmtpd_server(keeper: Keeper) -> Iterator[int]:
    """aiosmtpd with STARTTLS on an event loop of its own; its port."""
    loop = asyncio.new_event_loop()

    def session() -> SMTP:
        return SMTP(
            keeper, loop=loop, tls_context=AUTHORITY.server, data_size_limit=90_000_000, hostname="peer"
        )

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    starting = asyncio.run_coroutine_threadsafe(loop.create_server(session, "127.0.0.1", 0), loop)
    server = starting.result()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@on_each_loop_in_time
async def test_mail_of_each_size_arrives_at_aiosmtpd() -> None:
    keeper = Keeper()
    with aiosmtpd_server(keeper) as port:
        connection = await opportunistic(port)
        for size in (1_000, 90_000, 220_000, 600_000, 2_000_000, 40_000_000):
            done = await connection.send("ada@harbor.example", ["bob@quay.example"], message(size))
            assert done.final is not None, (size, done.answers)
            assert keeper.contents.pop() == message(size)
        await connection.quit()


@pytest.mark.parametrize("tls", TLS_KINDS)
@on_each_loop_in_time
async def test_mail_of_each_size_arrives_at_the_smtp_server_of_node(tls: TlsKind, tmp_path: Path) -> None:
    """OUT-18: as `smtp-server` of npm takes it, on Node's sockets and TLS."""
    with node_smtp_server(tls, AUTHORITY.pem, tmp_path) as peer:
        connection = await SmtpConnection.open(
            ("127.0.0.1", peer.port),
            server_name="mx.sink.test",
            hello="mx.pillar.example",
            tls=MODES[tls],
            trust=AUTHORITY.trust(),
        )
        assert isinstance(connection, SmtpConnection), connection
        for size in (1_000, 90_000, 220_000, 600_000, 2_000_000, 40_000_000):
            content = message(size)
            done = await connection.send("ada@harbor.example", ["bob@quay.example"], content)
            assert done.final is not None, (size, done.answers)
            taken = await asyncio.to_thread(peer.next_message)
            assert (taken.octets, taken.digest) == (len(content), hashlib.sha256(content).hexdigest())
            assert taken.secure == (tls != "clear")
        await connection.quit()


async def test_mail_of_each_size_arrives_at_postfix() -> None:
    """Over STARTTLS on one connection; Postfix hands each on to a server of the test."""
    issued = trustme.CA().issue_cert("mx.sink.test")
    certificate = issued.private_key_and_cert_chain_pem.bytes()
    sizes = (1_000, 220_000, 2_000_000, 20_000_000)
    async with Sink(extensions=("PIPELINING", "SIZE 90000000", "8BITMIME")) as sink:
        with postfix(sink.port, login=False, certificate=certificate) as peer:
            connection = await opportunistic(peer.port)
            for count, size in enumerate(sizes, 1):
                done = await connection.send("ada@harbor.example", ["bob@quay.example"], message(size))
                assert done.final is not None, (size, done.answers)
                await sink.messages(count, 60)
            await connection.quit()
    for mail in sink.received:
        assert b"(Postfix) with ESMTPS id" in mail.content
    arrived = [mail.content.split(b"\r\n\r\n", 1)[1] for mail in sink.received]
    assert sorted(arrived) == sorted(message(size).split(b"\r\n\r\n", 1)[1] for size in sizes)
