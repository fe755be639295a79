"""`pillarbox inbound`, and received mail in `pillarbox emails show` (receiving.md 5.4)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from click.testing import Result
from typer.testing import CliRunner

from cli.conftest import Installation
from kit.world import world
from pillarbox.cli import program

LETTER = b"""From someone Sat Oct  3 08:15:00 2026
Subject: Berth 12
Message-ID: <1@quay.example>
Content-Type: multipart/mixed; boundary=b

--b

Hello
--b
Content-Type: application/pdf; name=plan.pdf

%PDF
--b--
"""


@pytest.fixture
def closed_dns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A DNS server that nobody is: what the message makes us ask fails at once."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    monkeypatch.setenv("PILLARBOX_DNS", f"127.0.0.1:{port}")
    monkeypatch.setenv("PILLARBOX_INBOUND_REQUIRE_DNS", "false")
    monkeypatch.setenv("PILLARBOX_HOSTNAME", "mx.pillar.example")
    yield


@pytest.fixture
def here(database_url: str, tmp_path: Path, closed_dns: None) -> Installation:
    """A team, and a domain of it that receives."""

    async def prepare() -> None:
        async with world(database_url, tmp_path, started=False) as pillarbox:
            team = await pillarbox.team()
            capabilities = {"sending": "disabled", "receiving": "enabled"}
            made = await team.post("/domains", {"name": "harbor.example", "capabilities": capabilities})
            assert made.status_code == 201

    asyncio.run(prepare())
    return Installation(database_url, tmp_path)


def inbound(at: Installation, *arguments: str, raw: bytes = LETTER) -> Result:
    place = ("--data", str(at.folder), "--database-url", at.url)
    return CliRunner().invoke(program(), ["inbound", *arguments, *place], input=raw)


def test_a_message_from_a_file_goes_the_way_of_all_mail(here: Installation) -> None:
    done = inbound(here, "--rcpt", "help@harbor.example", "--rcpt", "postmaster")
    assert done.exit_code == 0, done.output + done.stderr
    email = done.stdout.split()[-1]
    [row] = here.sql("SELECT * FROM received_sources")
    assert str(row["id"]) == email
    assert bytes(row["data"]) == LETTER.partition(b"\n")[2].replace(b"\n", b"\r\n")
    again = inbound(here, "--rcpt", "help@harbor.example", "--rcpt", "postmaster")
    assert (again.exit_code, again.stdout) == (0, "it was stored before\n")

    shown = here.run("emails", "show", email)
    assert shown.exit_code == 0, shown.output
    for text in (
        "(received)",
        "Berth 12",
        "<> to help@harbor.example",
        "plan.pdf",
        "spf=none",
        "(handed in)",
    ):
        assert text in shown.stdout, text
    told = here.json("emails", "show", email)
    assert told["object"] == "received_email"
    assert told["recipients"] == ["help@harbor.example", "postmaster@mx.pillar.example"]
    assert [part["filename"] for part in told["attachments"]] == ["plan.pdf"]


@pytest.mark.parametrize(
    ("recipient", "status"),
    [("ann@elsewhere.example", 67), ("ann@mx.pillar.example", 67), ("no address", 67)],
)
def test_who_is_not_ours_gets_nothing_and_nobody_else_does(
    here: Installation, recipient: str, status: int
) -> None:
    done = inbound(here, "--rcpt", "help@harbor.example", "--rcpt", recipient)
    assert done.exit_code == status, done.output
    assert done.stderr.startswith("pillarbox: ")
    assert here.sql("SELECT count(*) AS n FROM received_emails")[0]["n"] == 0


def test_what_is_refused_and_what_may_come_again_are_told_apart(here: Installation) -> None:
    """By the exit statuses that mail servers know."""
    circle = b"Received: from a by b\n" * 51 + b"Subject: round\n\nx\n"
    done = inbound(here, "--rcpt", "help@harbor.example", raw=circle)
    assert done.exit_code == 69

    async def break_it() -> None:
        conn = await asyncpg.connect(here.url)
        await conn.execute("ALTER TABLE received_sources RENAME TO hidden")
        await conn.close()

    asyncio.run(break_it())
    assert inbound(here, "--rcpt", "help@harbor.example").exit_code == 75


@pytest.mark.parametrize(
    "raw",
    [
        b"Subject: x\r\n\r\na\nb\r\n",
        b"Subject: x\r\n\r\na\rb\r\n",
        b"Subject: x\n\na\rb\n",
        b"Subject: x\r\rbody\r",
        b"Subject: x\n\na\0b\n",
    ],
    ids=("a bare LF", "a bare CR", "a CR among LFs", "CRs alone", "a NUL"),
)
def test_what_smtp_refuses_is_refused_here(here: Installation, raw: bytes) -> None:
    """SMTP-04; a file whose lines end in LF throughout is none of it."""
    done = inbound(here, "--rcpt", "help@harbor.example", raw=raw)
    assert done.exit_code == 69, done.output
    assert "bare CR" in done.stderr
    assert here.sql("SELECT count(*) AS n FROM received_emails")[0]["n"] == 0


def test_a_team_is_listed_with_its_name_below_the_installations_domain(here: Installation) -> None:
    [team] = here.json("teams", "list")["data"]
    assert team["slug"].endswith(f"-{team['number']:03}")
    assert team["slug"] in here.run("teams", "list").stdout
