"""Teams, keys and domains by command; what they make works at the API at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cli.conftest import Installation
from kit.world import World, mail, world


def made_team(place: Installation, name: str = "Harbor") -> Any:
    return place.json("teams", "create", name, "--email", "ada@harbor.example")


GOOD = (200, None)


async def answered(pillarbox: World, token: str, wanted: tuple[int, str | None]) -> None:
    """Return when the API answers this key so: within a second (contract decision 33)."""
    client = pillarbox.client(token)
    async with asyncio.timeout(10):
        while True:
            answer = await client.get("/emails")
            if (answer.status_code, answer.json().get("name")) == wanted:
                return
            await asyncio.sleep(0.01)


def test_a_new_team_has_a_member_and_a_key_that_is_printed_once(empty: Installation) -> None:
    done = empty.run("teams", "create", "Harbor", "--email", "ada@harbor.example")
    assert done.exit_code == 0
    team, key = done.stdout.splitlines()
    assert key.startswith("api key re_")
    assert key.endswith("(shown only now; keep it)")
    [listed] = empty.json("teams", "list")["data"]
    assert team == f"team {listed['id']}"
    assert (listed["name"], listed["email"], listed["status"]) == ("Harbor", "ada@harbor.example", "active")
    assert [row["email"] for row in empty.sql("SELECT email FROM team_members")] == ["ada@harbor.example"]
    token = key.split()[2]
    assert token not in empty.run("keys", "list").stdout + empty.run("teams", "list").stdout


@pytest.mark.parametrize(("name", "email"), [(" ", "ada@harbor.example"), ("Harbor", "ada")])
def test_a_team_needs_a_name_and_an_address(empty: Installation, name: str, email: str) -> None:
    done = empty.run("teams", "create", name, "--email", email)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "pillarbox: A team needs a name and the email address of its member.\n"
    assert empty.json("teams", "list")["data"] == []


async def test_a_blocked_team_is_refused_and_an_unblocked_one_is_not(
    database_url: str, tmp_path: Path
) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        here = Installation(database_url, tmp_path)
        token = (await asyncio.to_thread(made_team, here))["token"]
        await answered(pillarbox, token, GOOD)
        refused = (451, "security_error")
        for command, wanted, said in (
            ("block", refused, "blocked"),
            ("block", refused, "blocked"),
            ("unblock", GOOD, "active"),
        ):
            done = await asyncio.to_thread(here.run, "teams", command, "Harbor")
            assert (done.exit_code, done.stdout) == (0, f"Harbor is {said}.\n")
            await answered(pillarbox, token, wanted)


def test_a_disabled_team_is_not_made_active_by_unblock(empty: Installation) -> None:
    made_team(empty)
    empty.sql("UPDATE teams SET status = 'disabled'")
    done = empty.run("teams", "unblock", "Harbor")
    assert (done.exit_code, done.stderr) == (
        1,
        "pillarbox: The team 'Harbor' is disabled; that cannot be changed this way.\n",
    )


def test_a_name_that_two_teams_share_asks_for_an_id(empty: Installation) -> None:
    ids = [made_team(empty)["id"] for _ in range(2)]
    done = empty.run("teams", "block", "Harbor")
    assert done.exit_code == 1
    assert done.stderr == f"pillarbox: Several teams are named 'Harbor'; use an id: {', '.join(ids)}.\n"
    assert empty.run("teams", "block", ids[1]).exit_code == 0
    assert [team["status"] for team in empty.json("teams", "list")["data"]] == ["active", "blocked"]


def test_the_only_team_need_not_be_named(empty: Installation) -> None:
    done = empty.run("keys", "create", "ci")
    assert (done.exit_code, done.stderr) == (1, "pillarbox: There is no team yet.\n")
    first = made_team(empty)
    assert empty.json("keys", "create", "ci")["team_id"] == first["id"]
    second = made_team(empty, "Lighthouse")
    done = empty.run("keys", "create", "ci")
    assert (done.exit_code, done.stderr) == (
        1,
        "pillarbox: There are several teams; name one with --team.\n",
    )
    assert empty.json("keys", "create", "ci", "--team", "Lighthouse")["team_id"] == second["id"]
    assert len(empty.json("keys", "list")["data"]) == 4
    assert len(empty.json("keys", "list", "--team", "Lighthouse")["data"]) == 2


async def test_a_key_lives_through_its_states(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        here = Installation(database_url, tmp_path)
        await asyncio.to_thread(made_team, here)
        key = await asyncio.to_thread(here.json, "keys", "create", "ci")
        await answered(pillarbox, key["token"], GOOD)
        refused = (403, "suspended_api_key")
        for command, wanted, said in (
            ("suspend", refused, "suspended"),
            ("suspend", refused, "suspended"),
            ("resume", GOOD, "active"),
            ("delete", (403, "invalid_api_key"), "deleted"),
        ):
            done = await asyncio.to_thread(here.run, "keys", command, key["id"])
            assert (done.exit_code, done.stdout) == (0, f"The key {key['id']} is {said}.\n")
            await answered(pillarbox, key["token"], wanted)


@pytest.mark.parametrize("command", ["suspend", "resume", "delete"])
def test_a_key_that_is_not_there(empty: Installation, command: str) -> None:
    made_team(empty)
    unknown = str(uuid4())
    done = empty.run("keys", command, unknown)
    assert (done.exit_code, done.stderr) == (1, f"pillarbox: There is no key {unknown}.\n")
    done = empty.run("keys", command, "ci")
    assert (done.exit_code, done.stderr) == (1, "pillarbox: 'ci' is not the id of a key.\n")


def test_a_key_of_a_deleted_domain_cannot_be_resumed(empty: Installation) -> None:
    made_team(empty)
    key = empty.json("keys", "create", "ci")["id"]
    empty.sql("UPDATE api_keys SET status = 'inactive' WHERE id = $1", key)
    done = empty.run("keys", "resume", key)
    assert (done.exit_code, done.stderr) == (1, "pillarbox: The key is inactive, not suspended.\n")


def test_a_key_may_be_bound_to_one_domain_of_its_team(empty: Installation) -> None:
    made_team(empty)
    empty.run("domains", "trust", "harbor.example", "--create")
    [domain] = empty.json("domains", "list")["data"]
    for wanted in ("Harbor.Example", domain["id"]):
        empty.json("keys", "create", "ci", "--permission", "sending_access", "--domain", wanted)
    keys = empty.json("keys", "list")["data"]
    assert [(key["permission"], key["domain_id"]) for key in keys[:2]] == [
        ("sending_access", domain["id"])
    ] * 2


def test_a_key_may_be_for_one_inbox_of_its_team(empty: Installation) -> None:
    made_team(empty)
    inbox_id = uuid4()
    empty.sql(
        "INSERT INTO inboxes (team_id, id, name, email_address, domain_id, created_at, updated_at) "
        "SELECT id, $1, 'Help', 'help@harbor.example', id, now(), now() FROM teams",
        inbox_id,
    )
    empty.sql(
        "INSERT INTO directory_inboxes (address, team_id, inbox_id, is_forwarded) "
        "SELECT 'help@harbor.example', id, $1, false FROM teams",
        inbox_id,
    )
    for wanted in ("Help@Harbor.example", str(inbox_id)):
        empty.json("keys", "create", "agent", "--inbox", wanted, "--rights", "send, read")
    keys = empty.json("keys", "list")["data"]
    assert [(key["permission"], key["inbox_id"], key["rights"]) for key in keys[:2]] == [
        ("inbox_access", str(inbox_id), ["read", "send"])
    ] * 2
    assert "read send" in (shown := empty.run("keys", "list").stdout)
    assert "help@harbor.example" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ci", "--inbox", "help@harbor.example"], "--inbox and --rights come together."),
        (["ci", "--rights", "read"], "--inbox and --rights come together."),
        (
            ["ci", "--inbox", "help@harbor.example", "--rights", "read,write"],
            "There is no right 'write'; the rights are read, label, draft, send.",
        ),
        (
            ["ci", "--inbox", "help@harbor.example", "--rights", "read"],
            "The team has no inbox 'help@harbor.example'.",
        ),
        (
            ["ci", "--inbox", "help", "--rights", "read"],
            "'help' is no inbox: The `inbox_id` must be a valid UUID.",
        ),
        (["ci", "--domain", "harbor.example"], "--domain needs --permission sending_access."),
        (
            ["ci", "--permission", "sending_access", "--domain", "harbor.example"],
            "The team has no domain 'harbor.example'; `pillarbox domains list` shows those it has.",
        ),
        (["x" * 51], "A key's name has 1 to 50 characters."),
    ],
)
def test_a_key_that_cannot_be_made(empty: Installation, arguments: list[str], said: str) -> None:
    made_team(empty)
    done = empty.run("keys", "create", *arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"pillarbox: {said}\n")
    assert len(empty.json("keys", "list")["data"]) == 1


async def test_a_trusted_domain_may_send_where_domains_must_be_verified(
    database_url: str, tmp_path: Path
) -> None:
    """Contract decision 21: the operator vouches for a domain without DNS."""
    async with world(database_url, tmp_path, require_verified_domain="always") as pillarbox:
        here = Installation(database_url, tmp_path)
        token = (await asyncio.to_thread(made_team, here))["token"]
        client = pillarbox.client(token)
        assert (await client.post("/emails", json=mail())).status_code == 403
        assert (await client.post("/domains", json={"name": "harbor.example"})).status_code == 201
        [before] = (await asyncio.to_thread(here.json, "domains", "list"))["data"]
        assert (before["may_send"], before["trusted"]) == (False, False)
        done = await asyncio.to_thread(here.run, "domains", "trust", "harbor.example")
        assert done.stdout == "harbor.example is trusted: the team Harbor may use it now.\n"
        [after] = (await asyncio.to_thread(here.json, "domains", "list"))["data"]
        assert (after["status"], after["may_send"], after["trusted"]) == ("verified", True, True)
        async with asyncio.timeout(10):
            while (await client.post("/emails", json=mail())).status_code != 200:
                await asyncio.sleep(0.01)


def test_a_domain_that_is_missing_is_made_only_when_asked(empty: Installation) -> None:
    made_team(empty)
    done = empty.run("domains", "trust", "harbor.example")
    assert (done.exit_code, done.stderr) == (
        1,
        "pillarbox: The team 'Harbor' has no domain harbor.example; add it with `POST /domains`, "
        "or use --create.\n",
    )
    assert empty.json("domains", "list")["data"] == []
    assert empty.run("domains", "trust", "harbor.example", "--create").exit_code == 0
    [made] = empty.json("domains", "list")["data"]
    assert (made["name"], made["trusted"]) == ("harbor.example", True)


def test_a_domain_of_another_team_cannot_be_taken_on_trust(empty: Installation) -> None:
    for team in ("Harbor", "Lighthouse"):
        made_team(empty, team)
    assert empty.run("domains", "trust", "harbor.example", "--create", "--team", "Harbor").exit_code == 0
    done = empty.run("domains", "trust", "harbor.example", "--create", "--team", "Lighthouse")
    assert done.exit_code == 1
    assert "is verified by another team" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["harbor", "192.0.2.1", "co.uk", "pillarbox.test"])
def test_a_name_that_is_no_domain_of_anyones(empty: Installation, name: str) -> None:
    made_team(empty)
    done = empty.run("domains", "trust", name, "--create")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)


def test_a_database_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    nowhere = Installation("postgresql://127.0.0.1:1/none", tmp_path)
    done = nowhere.run("teams", "list")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("pillarbox: The database cannot be used: ")


def test_what_others_wrote_cannot_steer_the_terminal(empty: Installation) -> None:
    empty.run("teams", "create", "Har\x1b[2Jbor \u202egnimraf", "--email", "ada@harbor.example")
    shown = empty.run("teams", "list").stdout
    assert "Har\\x1b[2Jbor \\u202egnimraf" in shown
    assert "\x1b" not in shown


def test_a_domain_is_added_with_the_records_to_publish(empty: Installation) -> None:
    empty.run("teams", "create", "Harbor", "--email", "ann@harbor.example")
    made = empty.json("domains", "create", "Harbor.example", "--receiving", "--return-path", "bounce")
    assert list(made) == ["object", "id", "name", "team", "records"]
    assert (made["name"], made["team"]["name"]) == ("harbor.example", "Harbor")
    names = {(record["type"], record["name"]) for record in made["records"]}
    assert {("MX", "bounce.harbor.example"), ("TXT", "pillarbox._domainkey.harbor.example")} <= {
        (kind, name.rstrip(".")) for kind, name in names
    }
    assert made["records"] == empty.json("domains", "dns", "harbor.example")["data"]
    shown = empty.run("domains", "create", "quay.example")
    assert shown.exit_code == 0
    assert "Publish these records" in shown.output
    assert "v=spf1" in shown.output
    assert "pillarbox domains verify quay.example" in shown.output
    assert "domain.created" in empty.run("people", "audit").output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["harbor.example"], "registered already"),
        (["a_b"], "name"),
        (["co.uk"], "public suffix"),
        (["pier.example", "--tls", "perhaps"], "tls"),
        (["pier.example", "--return-path", "a b"], "custom_return_path"),
        (["pier.example", "--team", "Nobody"], "There is no team"),
    ],
)
def test_a_domain_that_cannot_be_added(empty: Installation, words: list[str], said: str) -> None:
    empty.run("teams", "create", "Harbor", "--email", "ann@harbor.example")
    assert empty.run("domains", "create", "harbor.example").exit_code == 0
    refused = empty.run("domains", "create", *words)
    assert refused.exit_code == 1
    assert said in refused.stderr
