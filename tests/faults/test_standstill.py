"""A database that stands still: its processes live, its connections are open, and it says nothing.

Every listener answers in bounded time, and when the database goes on so does everything else, without a
restart.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from kit.frozen import Freezable, freezable
from kit.inbound_client import receiving_domain
from kit.process import environment, reconciled
from kit.smtp_listener import Dialog, dialog
from kit.smtp_sink import Sink
from kit.submission import SubmissionPorts, message_bytes, plain, submission
from kit.world import Team, mail

pytestmark = pytest.mark.sweep

BOUND = 10.0
HEALTH_BOUND = 1.0
SLACK = 3.0
COMMAND_SECONDS = 60.0
"""For a machine that is busy with other things."""

RAW = b"From: a@quay.example\r\nTo: x@harbor.example\r\nSubject: Berth\r\n\r\nReady\r\n.\r\n"


async def timed(work: Awaitable[object], bound: float) -> object:
    """The result, which must come within the bound."""
    began = time.monotonic()
    found = await work
    took = time.monotonic() - began
    assert took < bound + SLACK, f"{found} took {took:.1f} s"
    return found


async def refused(work: Awaitable[httpx.Response]) -> str:
    """The message of a 503 in the contract's shape that comes in time."""
    answer = await timed(work, BOUND)
    assert isinstance(answer, httpx.Response)
    body = answer.json()
    assert list(body) == ["statusCode", "message", "name"]
    assert (answer.status_code, body["name"]) == (503, "service_unavailable"), answer.text
    assert int(answer.headers["retry-after"]) >= 1
    return str(body["message"])


async def health(team: Team) -> int:
    answer = await timed(team.get("/health"), HEALTH_BOUND)
    assert isinstance(answer, httpx.Response)
    return answer.status_code


async def said(client: Dialog, data: bytes) -> str:
    """The code that the server answers in time."""
    client.write(data)
    return str(await timed(client.hear(BOUND + SLACK), BOUND))[:3]


@asynccontextmanager
async def inbound(listeners: SubmissionPorts, *, recipient: str | None) -> AsyncIterator[Dialog]:
    """A session with a sender, and a recipient if one is named."""
    async with dialog(listeners.smtp) as client:
        await client.ask("EHLO quay.example")
        assert (await client.ask("MAIL FROM:<a@quay.example>")).code == 250
        if recipient:
            assert (await client.ask(f"RCPT TO:<{recipient}>")).code == 250
        yield client


async def logged_in(listeners: SubmissionPorts, token: str) -> str:
    async with dialog(listeners.submission) as client:
        await client.ask("EHLO program.example")
        return await said(client, f"AUTH PLAIN {plain(token)}\r\n".encode())


async def until(is_so: Callable[[], Awaitable[bool]], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not await is_so():
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("longer", [0, pytest.param(110, marks=pytest.mark.slow)])
async def test_every_listener_answers_while_the_database_stands_still(tmp_path: Path, longer: int) -> None:
    async with (
        freezable(tmp_path) as postgres,
        Sink() as sink,
        submission(
            postgres.url,
            tmp_path,
            route=f"relay:smtp://127.0.0.1:{sink.port}",
            require_verified_domain="never",
            inbound_require_dns="false",
        ) as (team, listeners),
    ):
        await receiving_domain(team)
        before = await team.send(subject="before")
        await team.settled(before)
        await stands_still(postgres, team, listeners, longer)
        await goes_on(team, listeners)
        arrived = [subject_of(message.content) for message in await sink.messages(3)]
        # What the program handed in was answered 451, and may be there or not; but not twice.
        assert sorted(set(arrived) - {"program"}) == ["after", "before", "kept"]
        assert len(set(arrived)) == len(arrived)
        await reconciled(postgres.url)


def subject_of(content: bytes) -> str:
    return content.split(b"Subject: ")[1].split(b"\r\n")[0].decode()


async def stands_still(postgres: Freezable, team: Team, listeners: SubmissionPorts, longer: int) -> None:
    async with (
        inbound(listeners, recipient=None) as at_recipient,
        inbound(listeners, recipient="x@harbor.example") as at_data,
        listeners.program(team.token) as program,
    ):
        assert (await at_data.ask("DATA")).code == 354
        await program.ask("MAIL FROM:<notes@harbor.example>")
        await program.ask("RCPT TO:<ada@quay.example>")
        assert (await program.ask("DATA")).code == 354
        # No process knows what this key means; what is known stays known for a moment.
        unused = await team.key()
        with postgres.frozen():
            is_over = asyncio.Event()
            healths = asyncio.create_task(healths_of(team, is_over))
            answers = await asyncio.gather(
                refused(team.get("/emails")),
                refused(team.get("/domains")),
                refused(team.post("/api-keys", {"name": "late"})),
                refused(team.post("/emails", mail(subject="kept"), idempotency_key="kept")),
                refused(team.http.get("/emails", headers={"authorization": f"Bearer {team.token[:-1]}x"})),
                logged_in(listeners, unused),
                said(at_recipient, b"RCPT TO:<x@another.example>\r\n"),
                said(at_data, RAW),
                said(program, message_bytes(subject="program") + b".\r\n"),
            )
            assert answers[5:] == ["454", "451", "451", "451"]
            # Past every lease, and past the time-out of statements that wait in the background.
            await asyncio.sleep(longer)
            is_over.set()
            assert len(await healths) > 5
            assert set(await healths) == {503}


async def healths_of(team: Team, is_over: asyncio.Event) -> list[int]:
    """What /health says again and again meanwhile."""
    found = []
    while not is_over.is_set():
        found.append(await health(team))
        await asyncio.sleep(0.1)
    return found


async def goes_on(team: Team, listeners: SubmissionPorts) -> None:
    """Without a restart, and at once."""

    async def is_well() -> bool:
        return (await team.get("/health")).status_code == 200

    await until(is_well)
    first = await team.post("/emails", mail(subject="kept"), idempotency_key="kept")
    again = await team.post("/emails", mail(subject="kept"), idempotency_key="kept")
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    after = await team.send(subject="after")
    for email in (first.json()["id"], after):
        assert (await team.settled(email, 60))["last_event"] == "delivered"
    async with inbound(listeners, recipient="x@harbor.example") as client:
        await client.ask("DATA")
        assert await said(client, RAW) == "250"
    received = (await team.get("/emails/receiving")).json()["data"]
    assert len(received) == 1, "the message that was answered 451 and came again is stored once"


async def test_a_command_says_that_the_database_does_not_answer(tmp_path: Path) -> None:
    async with freezable(tmp_path) as postgres:
        with postgres.frozen():
            command = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "pillarbox",
                "queue",
                "--data",
                str(tmp_path / "data"),
                "--database-url",
                postgres.url,
                env=environment(),
                stderr=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            _, said = await asyncio.wait_for(command.communicate(), COMMAND_SECONDS)
        assert command.returncode == 1
        assert said.decode() == "pillarbox: The database cannot be used: it does not answer in time.\n"
