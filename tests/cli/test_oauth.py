"""`pillarbox oauth`: programs, and what they may do."""

from __future__ import annotations

import asyncio

import pytest

from cli.conftest import Installation
from kit.oauth_flow import allowed, register
from kit.programs import program
from kit.world import world

BUILT_IN = "7136aa0b-625c-4c9c-8820-e9784c8eb141"
NOBODY = "2f6d2d3e-0f2b-4d7d-9a57-3b1f5c9a7e10"


@pytest.fixture
def programs(harbor: Installation) -> Installation:
    asyncio.run(fill(harbor))
    return harbor


async def fill(harbor: Installation) -> None:
    """A program that somebody let act in a new team."""
    async with world(harbor.url, harbor.folder, started=False) as here:
        await allowed(here, client_name="Quill pen")


def client_of(programs: Installation) -> str:
    found = programs.json("oauth", "clients")["data"]
    return str(next(one["id"] for one in found if one["name"] == "Quill pen"))


def team_of(programs: Installation) -> str:
    [row] = programs.sql("SELECT team_id::text AS id FROM oauth_grants")
    return str(row["id"])


def test_programs_are_listed(programs: Installation) -> None:
    found = programs.json("oauth", "clients")["data"]
    assert [(one["name"], one["is_built_in"]) for one in found] == [
        ("Quill pen", False),
        ("Command line", True),
    ]
    assert all("secret_hash" not in one for one in found)
    lines = programs.run("oauth", "clients").stdout.splitlines()
    assert lines[0].split()[:2] == ["Id", "Name"]
    assert "unverified" in lines[1]
    assert "built in" in lines[2]


def test_a_program_is_verified_and_no_longer(programs: Installation) -> None:
    client_id = client_of(programs)
    assert programs.run("oauth", "verify", client_id).stdout == f"The program {client_id} is verified.\n"
    assert "verified" in programs.run("oauth", "clients").stdout.replace("unverified", "")
    assert programs.run("oauth", "verify", client_id, "--off").exit_code == 0
    acts = programs.sql("SELECT what, target FROM audit_entries WHERE what LIKE 'client.%' ORDER BY id")
    assert [(row["what"], row["target"]) for row in acts] == [("client.verified", client_id)] * 2


def test_a_program_that_is_disabled_has_no_live_grant(programs: Installation) -> None:
    client_id = client_of(programs)
    team = team_of(programs)
    [live] = programs.json("oauth", "grants", "--team", team)["data"]
    assert (live["name"], live["revoked_at"]) == ("Quill pen", None)
    said = programs.run("oauth", "disable", client_id).stdout
    assert said.startswith(f"1 grant of the program {client_id} revoked.")
    [gone] = programs.json("oauth", "grants", "--team", team)["data"]
    assert gone["revoked_reason"] == "client_disabled"
    assert "client_disabled" in programs.run("oauth", "grants", "--team", team).stdout
    assert "disabled" in programs.run("oauth", "clients").stdout
    assert programs.run("oauth", "disable", client_id).stdout.startswith("0 grants")
    assert programs.run("oauth", "enable", client_id).exit_code == 0
    assert "disabled" not in programs.run("oauth", "clients").stdout
    acts = programs.sql("SELECT what FROM audit_entries WHERE what ~ '^(client|grant[.]rev)' ORDER BY id")
    assert [row["what"] for row in acts][:2] == ["grant.revoked", "client.disabled"]
    assert acts[-1]["what"] == "client.enabled"


@pytest.mark.parametrize("spelled", ["upper case", "without hyphens"])
def test_a_program_is_disabled_however_its_id_is_written(programs: Installation, spelled: str) -> None:
    client_id = client_of(programs)
    written = client_id.upper() if spelled == "upper case" else client_id.replace("-", "")
    assert programs.run("oauth", "disable", written).stdout.startswith("1 grant of the program")
    [gone] = programs.json("oauth", "grants", "--team", team_of(programs))["data"]
    assert gone["revoked_reason"] == "client_disabled"
    assert programs.run("oauth", "enable", written).exit_code == 0
    acts = programs.sql("SELECT target FROM audit_entries WHERE what LIKE 'client.%'")
    assert [row["target"] for row in acts] == [client_id] * 2


def test_long_redirects_leave_the_table_readable(harbor: Installation) -> None:
    long = [f"https://{'a' * 2000}{number}.example/cb" for number in range(10)]

    async def fill_long() -> None:
        async with world(harbor.url, harbor.folder, started=False) as here:
            await register(here, client_name="Long", redirect_uris=long)
            await register(
                here, client_name="Short", redirect_uris=["cursor://x/cb", "https://quill.example/cb"]
            )

    asyncio.run(fill_long())
    shown = harbor.run("oauth", "clients").stdout
    assert max(map(len, shown.splitlines())) < 300
    assert "cursor:, quill.example" in shown
    assert long in [one["redirect_uris"] for one in harbor.json("oauth", "clients")["data"]]


def test_a_program_that_a_document_describes_loses_its_grants(harbor: Installation) -> None:
    url = "https://quill.example/app"

    async def fill_described() -> None:
        async with world(harbor.url, harbor.folder, started=False) as here:
            await program(await here.team("Described"))
            await here.pool.execute("UPDATE oauth_grants SET client_id = $1", url)

    asyncio.run(fill_described())
    [shown] = harbor.json("oauth", "clients")["described"]
    assert (shown["client_id"], shown["grants"], shown["live"]) == (url, 1, 1)
    assert url in harbor.run("oauth", "clients").stdout
    said = harbor.run("oauth", "disable", url).stdout
    assert said.startswith(f"1 grant of the program {url} revoked.")
    assert "--oauth-cimd-refused-hosts" in said
    for command in ("verify", "enable"):
        assert harbor.run("oauth", command, url).exit_code == 1


@pytest.mark.parametrize("command", ["verify", "disable", "enable"])
def test_what_is_no_program_is_refused(harbor: Installation, command: str) -> None:
    for wrong in (NOBODY, "quill"):
        done = harbor.run("oauth", command, wrong)
        assert done.exit_code == 1
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
    assert harbor.sql("SELECT count(*) FROM audit_entries WHERE what LIKE 'client.%'")[0]["count"] == 0


def test_a_team_without_grants(harbor: Installation) -> None:
    shown = harbor.run("oauth", "grants", "--team", "Harbor").stdout
    assert shown == "No program was let into the team 'Harbor'.\n"
    assert harbor.json("oauth", "grants", "--team", "Harbor") == {"object": "list", "data": []}


def test_keys_are_rotated(harbor: Installation) -> None:
    assert "signs in 20 minutes" in harbor.run("oauth", "rotate-keys").stdout
    assert "signs from now on" in harbor.run("oauth", "rotate-keys", "--at-once").stdout
    rows = harbor.sql("SELECT retired_at IS NULL AS is_good FROM oauth_keys ORDER BY created_at")
    assert [row["is_good"] for row in rows] == [False, True]
