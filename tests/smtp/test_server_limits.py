"""Time, numbers and the end: idle and slow clients, limits of one client, a stop (SMTP-05, 10, 21, 22)."""

from __future__ import annotations

import asyncio
import gc
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from kit.clock import ManualClock
from kit.memory import resident
from kit.smtp_listener import (
    Dialog,
    RecordingHandler,
    RunningListener,
    dialog,
    on_each_loop,
    running_listener,
    trusting,
)
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.mail.smtp.answers import OK, SessionReply
from pillarbox.mail.smtp.conversation import SessionTimeouts
from pillarbox.smtp.clients import (
    MINUTE,
    SHARE_EVERY,
    SHARED_SECONDS,
    Allowance,
    Clients,
    client_of,
)

SHORT = SessionTimeouts(greeting=0.0, command=0.15, text=0.15, look_every=0.01)
TESTS = Path(__file__).parents[1]


@pytest.fixture
def windows() -> Iterator[tuple[Windows, ManualClock]]:
    clock = ManualClock()
    memory = shared_memory.create()
    yield Windows(memory, clock), clock
    os.close(memory)


# Time ----------------------------------------------------------------------------------------------------


@on_each_loop
@pytest.mark.parametrize(
    "before",
    [
        (),
        ("EHLO x",),
        ("EHLO x", "MAIL FROM:<a@b.example>"),
        ("EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA"),
        ("EHLO x", "AUTH LOGIN"),
    ],
)
async def test_an_idle_session_times_out_in_every_state(before: tuple[str, ...]) -> None:
    """RFC 5321 4.5.3.2.7."""
    handler = RecordingHandler()
    async with running_listener(handler, timeouts=SHORT, offers_login=True, login_needs_tls=False) as found:
        async with found.dialog() as client:
            for line in before:
                await client.ask(line)
            assert [str(said) for said in await client.over()] == ["421 4.4.2"]
        await found.empty()
    assert handler.messages == []


async def test_a_text_that_trickles_is_cut_off() -> None:
    """Standards, section 0: 500 octets a second after the first minute, and half an hour at most."""
    slow = SessionTimeouts(greeting=0.0, text=5, free=0.05, octets_per_second=5000, look_every=0.01)
    long = SessionTimeouts(greeting=0.0, text=5, message=0.2, look_every=0.01)
    for timeouts in (slow, long):
        async with running_listener(timeouts=timeouts) as found, found.dialog() as client:
            await client.ask("EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA")
            while not client.is_over:
                client.write(b"x\r\n")
                await asyncio.sleep(0.01)
            assert [str(said) for said in await client.over()] == ["421 4.4.2"]


async def test_who_works_is_not_idle() -> None:
    async def later() -> SessionReply:
        await asyncio.sleep(0.4)
        return OK

    async with (
        running_listener(RecordingHandler(verdict=lambda s, c: later()), timeouts=SHORT) as found,
        found.dialog() as client,
    ):
        await client.ask("EHLO x")
        assert (await client.send(b"x\r\n")).code == 250


async def test_a_client_that_takes_no_last_word_is_cut_off() -> None:
    timeouts = SessionTimeouts(greeting=0.0, command=0.1, last_word=0.1, look_every=0.01)
    async with running_listener(timeouts=timeouts) as found, found.dialog() as client:
        client.transport.pause_reading()
        for _ in range(40):
            client.write(b"EHLO x\r\n" * 8192)
        await found.empty()


# Numbers -------------------------------------------------------------------------------------------------


def clients(
    windows: Windows, clock: ManualClock, *, index: int = 0, count: int = 1, **limits: int
) -> Clients:
    given = {"sessions": 1000, "per_client": None, "new_per_minute": None, **limits}
    return Clients(windows, clock, Allowance(**given), index=index, count=count)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::1", "2001:0db8:0001:0002"),
        ("2001:db8:1:2:ffff::9", "2001:0db8:0001:0002"),
        ("2001:db8:1:3::1", "2001:0db8:0001:0003"),
        ("fe80::1%eth0", "fe80:0000:0000:0000"),
        ("", ""),
    ],
)
def test_who_is_one_client(peer: str, client: str) -> None:
    assert client_of(peer) == client


def test_one_client_has_so_many_sessions_and_others_have_theirs(windows: tuple[Windows, ManualClock]) -> None:
    """SMTP-21."""
    limits = clients(*windows, per_client=3)
    assert [limits.admit(f"2001:db8::{n}") for n in range(4)] == [True, True, True, False]
    assert limits.admit("2001:db8:0:1::1")
    limits.left("2001:db8::1")
    assert limits.admit("2001:db8::9")
    assert not limits.admit("2001:db8::9")
    assert limits.total == 4


def test_the_processes_of_a_host_count_together(windows: tuple[Windows, ManualClock]) -> None:
    """SMTP-21: also where one process got all the connections; a dead one's are forgotten."""
    memory, clock = windows
    first = clients(memory, clock, index=0, count=2, per_client=4)
    second = clients(memory, clock, index=1, count=2, per_client=4)
    assert [first.admit("192.0.2.1") for _ in range(3)] == [True] * 3
    assert [second.admit("192.0.2.1") for _ in range(2)] == [True, False]
    first.left("192.0.2.1")
    assert second.admit("192.0.2.1")
    assert not first.admit("192.0.2.1")
    clock.advance(SHARED_SECONDS + 1)
    assert first.admit("192.0.2.1")


async def test_open_sessions_are_shown_as_long_as_they_last(windows: tuple[Windows, ManualClock]) -> None:
    memory, clock = windows
    first = clients(memory, clock, index=0, count=2, per_client=1)
    second = clients(memory, clock, index=1, count=2, per_client=1)
    assert first.admit("192.0.2.1")
    showing = asyncio.create_task(first.keep_sharing())
    for _ in range(10):
        await asyncio.sleep(0)
        clock.advance(SHARE_EVERY)
        for _ in range(3):
            await asyncio.sleep(0)
        assert not second.admit("192.0.2.1")
    showing.cancel()


def test_new_connections_have_a_rate(windows: tuple[Windows, ManualClock]) -> None:
    """SMTP-21."""
    memory, clock = windows
    limits = clients(memory, clock, new_per_minute=5)
    for _ in range(5):
        assert limits.admit("192.0.2.1")
        limits.left("192.0.2.1")
    assert not limits.admit("192.0.2.1")
    assert limits.admit("192.0.2.2")
    clock.advance(MINUTE)
    assert limits.admit("192.0.2.1")


def test_all_sessions_have_an_end(windows: tuple[Windows, ManualClock]) -> None:
    limits = clients(*windows, sessions=2)
    assert [limits.admit(f"192.0.2.{n}") for n in range(3)] == [True, True, False]


def test_five_failed_logins_of_a_client_close_auth_for_ten_minutes(
    windows: tuple[Windows, ManualClock],
) -> None:
    """SMTP-10, in all processes."""
    memory, clock = windows
    first, second = clients(memory, clock), clients(memory, clock)
    for limits in (first, second, first, second):
        limits.login_failed("192.0.2.1")
        assert limits.may_login("192.0.2.1")
    first.login_failed("192.0.2.1")
    assert not second.may_login("192.0.2.1")
    assert second.may_login("192.0.2.2")
    clock.advance(601)
    assert second.may_login("192.0.2.1")


@on_each_loop
async def test_who_is_one_too_many_hears_so(windows: tuple[Windows, ManualClock]) -> None:
    """SMTP-21."""
    async with running_listener(limits=clients(*windows, per_client=2)) as found:
        async with found.dialog() as first, found.dialog(), found.dialog(greeted=False) as third:
            assert [str(said) for said in await third.over()] == ["421 4.7.0"]
            assert (await first.ask("EHLO x")).code == 250
            assert found.listener.refused == 1
        await found.empty()
        async with found.dialog() as again:
            assert (await again.ask("EHLO x")).code == 250


@on_each_loop
async def test_who_is_one_too_many_gets_no_handshake(
    windows: tuple[Windows, ManualClock], tmp_path: Path
) -> None:
    """SMTP-21, with implicit TLS, where the client can read nothing before the handshake."""
    limits = clients(*windows, per_client=1)
    async with running_listener(limits=limits, tls=tmp_path, implicit_tls=True) as found:
        async with found.dialog(tls=trusting(tmp_path)) as first:
            with pytest.raises((ConnectionError, ssl.SSLError)):
                async with found.dialog(tls=trusting(tmp_path)):
                    pass
            assert (await first.ask("EHLO x")).code == 250
        await found.empty()
        async with found.dialog(tls=trusting(tmp_path)) as again:
            assert (await again.ask("EHLO x")).code == 250


async def test_failed_logins_close_the_sessions_of_that_client(windows: tuple[Windows, ManualClock]) -> None:
    """SMTP-10, emails.md section 10."""
    handler = RecordingHandler(users={"ann": "secret"})
    wrong = "AUTH PLAIN AGFubgBub25zZW5zZQ=="
    async with running_listener(
        handler, limits=clients(*windows), offers_login=True, login_needs_tls=False
    ) as found:
        async with found.dialog() as client:
            assert [str(await client.ask("EHLO x", wrong)) for _ in range(3)] == ["535 5.7.8"] * 3
            assert await client.over() == []
        async with found.dialog() as client:
            assert [str(await client.ask("EHLO x", wrong)) for _ in range(2)] == ["535 5.7.8"] * 2
            assert str(await client.ask("AUTH PLAIN AGFubgBzZWNyZXQ=")) == "421 4.7.0"
            assert await client.over() == []


@asynccontextmanager
async def slow_clients(found: RunningListener, count: int) -> AsyncIterator[list[Dialog]]:
    """Clients that are stuck in every place where one can be stuck."""
    stages = (
        (),
        ("EHLO x",),
        ("EHLO x", "MAIL FROM:<a@b.example>"),
        ("EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA"),
    )
    async with AsyncExitStack() as stack:
        made = []
        for number in range(count):
            client = await stack.enter_async_context(found.dialog())
            for line in stages[number % len(stages)]:
                await client.ask(line)
            client.write(b"MAIL FR")
            made.append(client)
        yield made


@on_each_loop
async def test_hundreds_of_slow_clients_hold_up_nobody() -> None:
    """SMTP-21: normal mail flows while 300 trickle an octet now and then."""
    handler = RecordingHandler()
    async with running_listener(handler) as found, slow_clients(found, 300) as slow:
        trickling = asyncio.create_task(trickle(slow))
        loop = asyncio.get_running_loop()
        worst = 0.0
        for _ in range(50):
            began = loop.time()
            async with dialog(found.port) as client:
                await client.ask("EHLO x")
                worst = max(worst, loop.time() - began)
                assert (await client.send(b"Subject: x\r\n\r\nx\r\n")).code == 250
        trickling.cancel()
        assert found.listener.sessions >= 300
        assert not any(client.is_over for client in slow)
    assert len(handler.messages) == 50
    assert worst < 1.0


async def trickle(slow: list[Dialog]) -> None:
    while True:
        for client in slow:
            client.write(b"x")
            await asyncio.sleep(0)


# The end -------------------------------------------------------------------------------------------------


@on_each_loop
async def test_a_stop_ends_idle_sessions_and_waits_for_what_is_under_way() -> None:
    """SMTP-22: nothing that was acknowledged is lost, nobody is left without a word."""
    gate = asyncio.Event()

    async def stored() -> SessionReply:
        await gate.wait()
        return OK

    handler = RecordingHandler(verdict=lambda session, content: stored())
    async with (
        running_listener(handler) as found,
        found.dialog() as idle,
        found.dialog() as begun,
        found.dialog() as storing,
        found.dialog() as reading,
    ):
        await begun.ask("EHLO x", "MAIL FROM:<a@b.example>")
        for client in (storing, reading):
            await client.ask("EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA")
        storing.write(b"one\r\n.\r\n")
        reading.write(b"two")
        async with asyncio.timeout(5):
            while len(handler.messages) < 1:
                await asyncio.sleep(0.005)
        stopping = asyncio.create_task(found.listener.stop(10))
        for client in (idle, begun):
            assert [str(said) for said in await client.over()] == ["421 4.3.2"]
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", found.port)
        reading.write(b"\r\n.\r\nMAIL FROM:<a@b.example>\r\n")
        gate.set()
        assert [str(said) for said in await storing.over()] == ["250 2.0.0", "421 4.3.2"]
        assert [str(said) for said in await reading.over()] == ["250 2.0.0", "421 4.3.2"]
        await stopping
    assert [kept.text for kept in handler.messages] == [b"one\r\n", b"two\r\n"]


async def test_a_text_that_does_not_end_in_time_is_not_stored() -> None:
    """SMTP-22: it was never acknowledged, and the client is told to come again."""
    handler = RecordingHandler()
    async with running_listener(handler) as found, found.dialog() as client:
        await client.ask("EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<c@d.example>", "DATA")
        client.write(b"half")
        await asyncio.sleep(0.01)
        await found.listener.stop(0.05)
        assert [str(said) for said in await client.over()] == ["421 4.3.2"]
    assert handler.messages == []


# Memory --------------------------------------------------------------------------------------------------

IDLE = """
import asyncio, sys
sys.path[:0] = sys.argv[1:3]
import uvloop
from kit.smtp_listener import RecordingHandler, running_listener

async def main():
    async with running_listener(RecordingHandler()) as found:
        print(found.port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)

uvloop.run(main())
"""


async def test_a_thousand_idle_connections_take_less_than_60_mb() -> None:
    """Issue 6, numbers: in a process of its own, each after EHLO and MAIL (DUR-12)."""
    server = subprocess.Popen(
        [sys.executable, "-c", IDLE, str(TESTS), str(TESTS.parent / "src")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        port = int(await asyncio.to_thread(server.stdout.readline))
        gc.collect()
        before = resident(server.pid)
        async with AsyncExitStack() as stack:
            for _ in range(1000):
                client = await stack.enter_async_context(dialog(port))
                await client.ask("EHLO x", "MAIL FROM:<a@b.example>")
            taken = resident(server.pid) - before
        print(f"{taken / 1000:.0f} octets for each idle connection")
        assert taken < 60_000_000
    finally:
        server.kill()
        server.wait()
