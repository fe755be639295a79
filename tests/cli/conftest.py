"""A small installation with an email in every condition, made once and copied for each test."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from click.testing import Result
from typer.testing import CliRunner

from kit.clock import ManualClock
from kit.smtp_sink import USUAL, Sink
from kit.world import Team, World, with_key_ring, world
from kit.zone import Zone
from pillarbox.cli import program
from pillarbox.kernel.settings.settings import settings_of

ZONE = """
quay.example     MX 10 mx.quay.example
pier.example     MX 10 mx.quay.example
deaf.example     MX 10 mx.quay.example
mx.quay.example  A  127.0.0.1
"""

SMALL = {"filename": "berth.txt", "content": "QmVydGg="}
LARGE = {"filename": "chart.bin", "content": "QUFB" * 100_000}
REMOTE = {"filename": "tide.pdf", "path": "http://127.0.0.1:1/tide.pdf"}


@dataclass(frozen=True, slots=True)
class Installation:
    """A database and a data folder that no server uses."""

    url: str
    folder: Path

    def run(self, *arguments: str, stdin: bytes = b"") -> Result:
        """`pillarbox ARGUMENTS` on this installation."""
        place = ("--data", str(self.folder), "--database-url", self.url)
        return CliRunner().invoke(program(), [*arguments, *place], input=stdin)

    def json(self, *arguments: str, status: int = 0) -> Any:
        """The JSON that a command prints."""
        done = self.run(*arguments, "--json")
        assert done.exit_code == status, done.output + done.stderr
        return json.loads(done.stdout)

    def sql(self, statement: str, *arguments: Any) -> list[Any]:
        """What an operator with psql would do or see."""

        return asyncio.run(self._fetch(statement, *arguments))

    def email(self, subject: str) -> str:
        """The id of the email with that subject."""
        return str(asyncio.run(self.id_of(subject)))

    async def id_of(self, subject: str) -> UUID:
        [(found,)] = await self._fetch("SELECT id FROM emails WHERE subject = $1", subject)
        return UUID(str(found))

    async def _fetch(self, statement: str, *arguments: Any) -> list[Any]:
        conn = await asyncpg.connect(self.url)
        try:
            return list(await conn.fetch(statement, *arguments))
        finally:
            await conn.close()

    def blobs(self, folder: str = "attachments") -> list[Path]:
        return [path for path in (self.folder / "blobs" / folder).rglob("*") if path.is_file()]


@pytest.fixture
def empty(database_url: str, tmp_path: Path) -> Installation:
    """An installation that has been started once."""
    asyncio.run(with_key_ring(settings_of({"data": str(tmp_path / "data"), "database_url": database_url})))
    return Installation(database_url, tmp_path / "data")


@pytest.fixture(scope="session")
def made_harbor(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("harbor")
    url = databases.fresh()
    asyncio.run(build(url, folder))
    return Installation(url, folder)


@pytest.fixture
def harbor(made_harbor: Installation, databases: Any, tmp_path: Path) -> Iterator[Installation]:
    """A copy of the installation that this test may damage."""
    name = made_harbor.url.removeprefix("postgresql:///").split("?")[0]
    url = databases.fresh(template=name)
    shutil.copytree(made_harbor.folder, tmp_path / "data")
    yield Installation(url, tmp_path / "data")
    databases.drop(url)


def answer(session: Any, argument: str) -> object:
    """What the recipients' server says: it depends on the mailbox."""
    if "gone@" in argument:
        return "550 5.1.1 no such user"
    return "452 4.2.2 mailbox full" if "full@" in argument else USUAL


async def build(url: str, folder: Path) -> None:
    """Every kind of email there is, each by its own way in and carried by the real engine."""
    zone = Zone(ZONE)
    zone.fail("deaf.example")
    async with (
        Sink() as sink,
        world(
            url,
            folder,
            clock=ManualClock(),
            zone=zone,
            started=False,
            route="direct",
            remote_smtp_port=str(sink.port),
            allow_private="127.0.0.0/8",
        ) as pillarbox,
    ):
        sink.script("RCPT", then=answer)
        team = await pillarbox.team("Harbor")
        await team.domain()
        other = await pillarbox.team("Lighthouse")
        await other.domain("light.example")
        await other.send(subject="other team", from_="lamp@light.example")
        await send_at_once(team)
        await send_later(team)
        await carry(pillarbox, zone)


async def send_at_once(team: Team) -> None:
    await team.send(subject="plain")
    await team.send(subject="twice", to=["ada@quay.example", "ADA@quay.example"])
    await team.send(
        subject="mixed",
        to=["ada@quay.example", "gone@quay.example", "full@quay.example"],
        cc=["Bo <bo@pier.example>"],
    )
    await team.send(subject="unreached", to=["full@deaf.example"])
    fates = ("delivered", "bounced", "complained", "suppressed")
    await team.send(subject="simulated", to=[f"{fate}@pillarbox.test" for fate in fates])
    await team.send(subject="small file", attachments=[SMALL])
    await team.send(subject="large file", attachments=[LARGE, SMALL])
    await team.send(subject="remote file", attachments=[REMOTE])
    kept = {"from": "notes@harbor.example", "to": "ada@quay.example", "subject": "kept", "text": "x"}
    await team.post("/emails", kept, idempotency_key="once")
    batch = [{**kept, "subject": f"batch {number}"} for number in range(3)]
    await team.post("/emails/batch", batch, idempotency_key="many")


async def send_later(team: Team) -> None:
    await team.send(subject="scheduled", scheduled_at="in 20 days", to=["a@quay.example", "b@pier.example"])
    await team.send(subject="released", scheduled_at="in 1 hour", to=["a@quay.example", "b@pier.example"])
    canceled = await team.send(subject="canceled", scheduled_at="in 1 hour")
    await team.post(f"/emails/{canceled}/cancel")
    key = await team.post("/api-keys", {"name": "short-lived"})
    await team.using(key.json()["token"]).send(subject="keyless", scheduled_at="in 1 hour")
    await team.call("DELETE", f"/api-keys/{key.json()['id']}")


async def carry(pillarbox: World, zone: Zone) -> None:
    """Attempts over some hours; a server that is reached only at the second attempt is among them."""
    await pillarbox.turn()
    zone.fail("deaf.example", "")
    for seconds in (70, 340, 3600):
        pillarbox.clock.advance(seconds)
        while await pillarbox.turn():
            pass
