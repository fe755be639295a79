"""The doctor on the machine itself, on a domain, and as a command (OPS-01)."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from typer.testing import CliRunner

from cli.conftest import Installation
from kit.dns_server import DnsServer
from kit.manual_world import manual_world
from kit.smtp_sink import Sink
from kit.world import Team
from pillarbox.cli import program
from pillarbox.doctor import machine
from pillarbox.doctor.checks import Level
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.storage.disk_space import Space
from repository.running import supervisor

GIB = 1024**3


class Wrong(SystemClock):
    """A clock that is late."""

    def __init__(self, late: float) -> None:
        self._late = timedelta(seconds=late)

    def now(self) -> Any:
        return super().now() - self._late


@pytest.mark.parametrize(
    ("late", "level"), [(0, Level.OK), (-5, Level.WARNING), (5, Level.WARNING), (40, Level.PROBLEM)]
)
async def test_the_clock(database_url: str, late: float, level: Level) -> None:
    async with asyncpg.create_pool(database_url, min_size=1, max_size=1) as pool:
        check = await machine.clock(pool, Wrong(late))
    assert (check.name, check.level) == ("clock", level)


@pytest.mark.parametrize(
    ("free", "level"), [(50 * GIB, Level.OK), (1536 * 1024**2, Level.WARNING), (1000, Level.PROBLEM)]
)
def test_the_disk(free: int, level: Level) -> None:
    """Two folders on one disk are one check; a folder that nobody can look at is none."""
    spaces = {Path("a"): Space(100 * GIB, free), Path("b"): Space(100 * GIB, free), Path("c"): None}
    [check] = machine.disk(list(spaces), spaces.__getitem__)
    assert (check.name, check.level, check.step is None) == ("disk", level, level is Level.OK)


async def test_the_settings_of_the_database(database_url: str) -> None:
    """The tests' own server runs without fsync; nobody should."""
    async with asyncpg.create_pool(database_url, min_size=1, max_size=1) as pool:
        await pool.execute("SET synchronous_commit = off")
        found = {check.name: check for check in await machine.database(pool, 100_000)}
    assert {name: check.level for name, check in found.items()} == {
        "database.fsync": Level.PROBLEM,
        "database.synchronous_commit": Level.PROBLEM,
        "database.full_page_writes": found["database.full_page_writes"].level,
        "database.zero_damaged_pages": Level.OK,
        "database.server_encoding": Level.OK,
        "database.transaction_read_only": Level.OK,
        "database.max_connections": Level.WARNING,
    }
    assert "lost in a crash" in found["database.synchronous_commit"].found


# As a command -------------------------------------------------------------------------------------

WORLD = """
    gmail.com                  MX   10 mx.gmail.com
    outlook.com                MX   10 mx.outlook.com
    yahoo.com                  MX   10 mx.yahoo.com
    mx.gmail.com               A    127.0.0.1
    mx.outlook.com             A    127.0.0.1
    mx.yahoo.com               A    127.0.0.1
    mx.pillar.example          A    127.0.0.1
    1.0.0.127.in-addr.arpa     PTR  mx.pillar.example
"""


async def examined(
    here: Installation, dns: DnsServer, sink: Sink, *arguments: str, route: str | None = "direct"
) -> Any:
    """What `pillarbox doctor` comes to on this installation."""
    variables = {
        "PILLARBOX_DNS": f"127.0.0.1:{dns.port}",
        "PILLARBOX_REMOTE_SMTP_PORT": str(sink.port),
        "PILLARBOX_HOSTNAME": "mx.pillar.example",
        "PILLARBOX_ALLOW_PRIVATE": "127.0.0.0/8",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, text in variables.items():
            patch.setenv(name, text)
        if route is not None:
            patch.setenv("PILLARBOX_ROUTE", route)
        return await asyncio.to_thread(here.run, "doctor", *arguments)


async def test_without_a_server_the_route_is_not_taken_for_known(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox, DnsServer(WORLD) as dns, Sink() as sink:
        await pillarbox.team()
        here = Installation(database_url, tmp_path)
        done = await examined(here, dns, sink, "--json", route=None)
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        for name in ("outgoing", "return_path"):
            assert checks[name]["level"] == "skipped"
            assert checks[name]["found"] == "no server runs, and `doctor` was not told its route"
        assert "PILLARBOX_ROUTE" in checks["outgoing"]["step"]


async def test_the_command_against_a_data_folder(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox, DnsServer(WORLD) as dns, Sink() as sink:
        await pillarbox.team()
        here = Installation(database_url, tmp_path)
        done = await examined(here, dns, sink, "--json")
        document = json.loads(done.stdout)
        assert list(document) == ["object", "healthy", "domain", "checks"]
        levels = {check["name"]: check["level"] for check in document["checks"]}
        assert levels["outgoing"] == "ok"
        assert (levels["helo"], levels["ptr"]) == ("ok", "ok")
        assert (levels["clock"], levels["listener"]) == ("ok", "skipped")
        assert levels["database.fsync"] == "problem"
        assert (document["healthy"], done.exit_code) == (False, 1)
        assert list(document["checks"][0]) == ["name", "level", "title", "found", "expected", "step"]
        people = await examined(here, dns, sink)
        assert people.exit_code == 1
        assert "PROBLEM" in people.stdout
        assert "What to do:" in people.stdout
        assert "Set `fsync = on`" in people.stdout


async def published(team: Team, domain: str, dns: DnsServer, *, all_of_it: bool) -> None:
    """Put a domain's records into DNS as they should be, or with mistakes."""
    shown = (await team.get(f"/domains/{domain}")).json()["records"]
    mx, spf, dkim = shown
    dns.add("send.harbor.example", "MX", f"{mx['priority']} {mx['value']}")
    dns.add("send.harbor.example", "TXT", spf["value"])
    if all_of_it:
        value = dkim["value"]
        dns.add("pillarbox._domainkey.harbor.example", "TXT", f'"{value[:200]}" "{value[200:]}"')
        dns.add("_dmarc.harbor.example", "TXT", '"v=DMARC1; p=none;"')


async def test_the_command_looks_at_a_domain(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox, DnsServer(WORLD) as dns, Sink() as sink:
        team = await pillarbox.team()
        domain = await team.domain("harbor.example")
        here = Installation(database_url, tmp_path)
        await published(team, domain, dns, all_of_it=False)
        done = await examined(here, dns, sink, "Harbor.example", "--json")
        found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        assert [found[f"record.{name}"]["level"] for name in ("spf_mx", "spf_txt", "dkim", "dmarc")] == [
            "ok", "ok", "problem", "warning",
        ]  # fmt: skip
        assert found["domain.sending"]["level"] == "ok"
        missing = found["record.dkim"]
        assert missing["title"] == "TXT pillarbox._domainkey.harbor.example"
        assert missing["expected"].startswith("p=MII")
        assert "Found: nothing" in missing["found"]
        assert missing["step"]
        await published(team, domain, dns, all_of_it=True)
        again = await examined(here, dns, sink, "harbor.example", "--json")
        found = {check["name"]: check["level"] for check in json.loads(again.stdout)["checks"]}
        assert (found["record.dkim"], found["record.dmarc"]) == ("ok", "ok")


async def test_a_domain_that_nobody_has(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox, DnsServer(WORLD) as dns, Sink() as sink:
        await pillarbox.team()
        here = Installation(database_url, tmp_path)
        for name, said in (("nobody.example", "No team has the domain"), ("a_b", "is not a domain")):
            done = await examined(here, dns, sink, name)
            assert (done.exit_code, done.stdout) == (2, "")
            assert said in done.stderr


def test_beside_a_running_server_its_settings_count(tmp_path: Path) -> None:
    """The host name and the route are those that the server was started with; a connection to it is tried."""
    flags = ("--processes", "1", "--hostname", "berth")
    with supervisor(tmp_path, *flags) as running:
        listeners = running.ready()
        found = CliRunner().invoke(program(), ["doctor", "--json", "--data", str(tmp_path)])
        checks = {check["name"]: check for check in json.loads(found.stdout)["checks"]}
        assert checks["helo.no_domain"]["found"] == "the host name is berth"
        assert checks["listener.http"]["level"] == "ok"
        assert listeners["http"] in checks["listener.http"]["found"]
        assert (found.exit_code, json.loads(found.stdout)["healthy"]) == (0, True)


def test_without_a_database_nothing_can_be_examined(tmp_path: Path) -> None:
    done = Installation(f"postgresql:///nothing?host={tmp_path}", tmp_path).run("doctor")
    assert (done.exit_code, done.stdout) == (2, "")
