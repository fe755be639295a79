"""`pillarbox domains dns` and `domains verify`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import dns.zone
import pytest

from cli.conftest import Installation
from kit.manual_world import manual_world
from kit.world import World
from pillarbox.domains import keys
from pillarbox.domains.context import DomainContext
from pillarbox.domains.dns.zone import ZoneLine, snippet

HEAD = "$ORIGIN .\n@ 3600 IN SOA ns. host. 1 1 1 1 1\n@ 3600 IN NS ns.\n"


@pytest.fixture(autouse=True)
def _hostname(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server runs here that would tell the command its settings."""
    monkeypatch.setenv("PILLARBOX_HOSTNAME", "mx.pillar.example")


async def run(pillarbox: World, folder: Path, url: str, *arguments: str) -> Any:
    here = Installation(url, folder)
    return await asyncio.to_thread(here.run, *arguments)


async def made(pillarbox: World, **fields: Any) -> dict[str, Any]:
    team = await pillarbox.team()
    answer = await team.post("/domains", {"name": "mail.harbor.co.uk", **fields})
    assert answer.status_code == 201, answer.text
    return {"team": team, **answer.json()}


async def test_the_zone_lines_are_what_a_name_server_reads(database_url: str, tmp_path: Path) -> None:
    """Every record under its full name; the DKIM value in strings of at most 255 bytes."""
    async with manual_world(database_url, tmp_path) as pillarbox:
        domain = await made(
            pillarbox,
            capabilities={"receiving": "enabled"},
            tracking_subdomain="links",
        )
        done = await run(pillarbox, tmp_path, database_url, "domains", "dns", "mail.harbor.co.uk.", "--zone")
        assert done.exit_code == 0, done.stderr
        assert "; for links and pictures of tracked mail" in done.stdout
        zone = dns.zone.from_text(HEAD + done.stdout, origin=".", relativize=False)
        host = "mx.pillar.example."
        found = {
            (name.to_text(), rdata.to_text())
            for name, _, rdata in zone.iterate_rdatas()
            if name.to_text() != "."
        }
        key = domain["records"][2]["value"]
        [dkim] = [text for name, text in found if name.startswith("pillarbox._domainkey")]
        assert "".join(dkim.split('" "')).strip('"') == key
        assert found - {("pillarbox._domainkey.mail.harbor.co.uk.", dkim)} == {
            ("send.mail.harbor.co.uk.", f"10 {host}"),
            ("send.mail.harbor.co.uk.", '"v=spf1 a:mx.pillar.example ~all"'),
            ("mail.harbor.co.uk.", f"10 {host}"),
            ("links.mail.harbor.co.uk.", host),
            ("_dmarc.mail.harbor.co.uk.", '"v=DMARC1; p=none;"'),
        }


async def test_as_a_table_and_as_json(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        await made(pillarbox)
        table = await run(pillarbox, tmp_path, database_url, "domains", "dns", "MAIL.harbor.co.uk")
        head = table.stdout.splitlines()[0].split()
        assert head == ["Record", "Type", "Name", "Value", "Priority", "Status"]
        assert "send.mail.harbor.co.uk. 3600 IN MX 10 mx.pillar.example." in table.stdout
        here = Installation(database_url, tmp_path)
        data = (await asyncio.to_thread(here.json, "domains", "dns", "mail.harbor.co.uk"))["data"]
        assert [(one["record"], one["type"], one["priority"], one["status"]) for one in data] == [
            ("SPF", "MX", 10, "not_started"),
            ("SPF", "TXT", None, "not_started"),
            ("DKIM", "TXT", None, "not_started"),
            ("DMARC", "TXT", None, None),
        ]
        assert data[1]["value"] == "v=spf1 a:mx.pillar.example ~all"
        assert "recommended" in data[3]["note"]


async def test_keys_in_rotation_are_listed(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        domain = await made(pillarbox)
        team = domain["team"]
        context = pillarbox.app.need(DomainContext)
        rotation = await keys.rotate(team.db, UUID(domain["id"]), context)
        selector = rotation.key.selector
        done = await run(pillarbox, tmp_path, database_url, "domains", "dns", "mail.harbor.co.uk", "--zone")
        assert f"{selector}._domainkey.mail.harbor.co.uk. 3600 IN TXT" in done.stdout
        assert "; publish it: this key signs as soon as it is seen" in done.stdout
        assert done.stdout.count("._domainkey.") == 2


async def test_a_placeholder_shows_what_proves_the_claim(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        owner, claimer = await pillarbox.team("Owner"), await pillarbox.team("Claimer")
        await owner.domain("quay.example")
        claim = (await claimer.post("/domains/claim", {"name": "quay.example"})).json()
        several = await run(pillarbox, tmp_path, database_url, "domains", "dns", "quay.example")
        assert several.exit_code == 1
        assert "Several teams have the domain" in several.stderr
        done = await run(
            pillarbox, tmp_path, database_url, "domains", "dns", "quay.example", "--team", "Claimer", "--zone"
        )
        lines = done.stdout.splitlines()
        assert lines[1] == f'quay.example. 3600 IN TXT "{claim["record"]["value"]}"'
        refused = await run(
            pillarbox, tmp_path, database_url, "domains", "verify", "quay.example", "--team", "Claimer"
        )
        assert refused.exit_code == 1
        assert "claim" in refused.stderr


async def test_verify_asks_for_a_check(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        domain = await made(pillarbox)
        done = await run(pillarbox, tmp_path, database_url, "domains", "verify", "mail.harbor.co.uk")
        assert (done.exit_code, done.stderr) == (0, "")
        assert "pillarbox doctor mail.harbor.co.uk" in done.stdout
        shown = (await domain["team"].get(f"/domains/{domain['id']}")).json()
        assert shown["status"] == "pending"
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM jobs WHERE kind = 'domain.check'") == 1


@pytest.mark.parametrize("command", ["dns", "verify"])
def test_a_domain_that_nobody_has(empty: Installation, command: str) -> None:
    empty.json("teams", "create", "Harbor", "--email", "ada@harbor.example")
    for name, said in (("nobody.example", "No team has the domain"), ("a_b", "is not a domain")):
        done = empty.run("domains", command, name)
        assert (done.exit_code, done.stdout) == (1, "")
        assert said in done.stderr


def test_quotes_and_backslashes_are_escaped() -> None:
    line = ZoneLine("SPF", "a.example", "TXT", 'v=spf1 "x" \\', note="look")
    assert snippet([line]) == '; look\na.example. 3600 IN TXT "v=spf1 \\"x\\" \\\\"'
