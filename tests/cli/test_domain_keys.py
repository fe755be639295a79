"""`pillarbox domains rotate-dkim`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Installation
from kit.domain_dns import Place, checked


@pytest.fixture(autouse=True)
def _hostname(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server runs here that would tell the command its settings."""
    monkeypatch.setenv("PILLARBOX_HOSTNAME", "mx.pillar.example")


async def run(at: Place, folder: Path, url: str, *arguments: str) -> Any:
    return await asyncio.to_thread(Installation(url, folder).run, "domains", "rotate-dkim", *arguments)


async def test_a_rotation_from_the_command_to_the_switch(database_url: str, tmp_path: Path) -> None:
    async with checked(database_url, tmp_path) as at:
        domain = await (await at.adds()).verified()
        done = await run(at, tmp_path, database_url, "Harbor.Example.")
        assert done.exit_code == 0, done.stderr
        [line] = [line for line in done.stdout.splitlines() if "TXT" in line]
        owner, _, value = line.split()
        assert owner == "pillarbox2._domainkey"
        again = await run(at, tmp_path, database_url, "harbor.example")
        assert (again.exit_code, value in again.stdout) == (0, True)
        assert "waits for its record already" in again.stdout
        at.dns.put(f"{owner}.harbor.example", "TXT", value)
        waiting = await at.world.pool.fetchval("SELECT max(due_at) FROM jobs")
        await at.checks_until(max(waiting, at.now()))
        assert (await domain.shown())["records"][2]["name"] == owner
        assert value == (await domain.shown())["records"][2]["value"]


async def test_names_that_cannot_be_rotated(database_url: str, tmp_path: Path) -> None:
    async with checked(database_url, tmp_path) as at:
        await at.adds()
        await at.adds(team=await at.world.team("Quay"))
        unknown = await run(at, tmp_path, database_url, "nobody.example")
        assert (unknown.exit_code, "No team has the domain" in unknown.stderr) == (1, True)
        several = await run(at, tmp_path, database_url, "harbor.example")
        assert (several.exit_code, "--team" in several.stderr) == (1, True)
        mine = await run(at, tmp_path, database_url, "harbor.example", "--team", str(at.team.id))
        assert mine.exit_code == 0
        assert await at.world.pool.fetchval("SELECT count(*) FROM dkim_keys") == 3
