"""People by command: for the operator, who needs no account."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cli.conftest import Installation
from kit.people import PASSWORD, Person, a_person, heading, logged_in, visit
from kit.world import world
from pillarbox.people.roles import TeamRole

ADA = "ada@harbor.example"


def made_team(place: Installation) -> None:
    assert place.run("teams", "create", "Harbor", "--email", "first@harbor.example").exit_code == 0


def path_in(line: str) -> str:
    return urlsplit(line.split()[1]).path


async def test_a_person_that_the_operator_made_sets_up_an_account(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as pillarbox:
        here = Installation(database_url, tmp_path)
        await asyncio.to_thread(made_team, here)
        done = await asyncio.to_thread(here.run, "people", "create", "Ada@Harbor.example", "--role", "member")
        assert done.exit_code == 0, done.stderr
        person, link = done.stdout.splitlines()
        [listed] = (await asyncio.to_thread(here.json, "people", "list"))["data"]
        assert person == f"person {listed['id']}"
        assert (listed["email"], listed["state"]) == (ADA, "not set up")
        assert listed["teams"] == [{"name": "Harbor", "role": "member"}]
        browser = visit(pillarbox)
        answer = await browser.send(path_in(link), name="Ada", password=PASSWORD)
        assert answer.headers["location"] == "/dashboard"
        [listed] = (await asyncio.to_thread(here.json, "people", "list"))["data"]
        assert (listed["name"], listed["state"], listed["sessions"]) == ("Ada", "active", 1)
        again = await asyncio.to_thread(here.run, "people", "create", ADA)
        assert (again.exit_code, again.stderr) == (1, f"pillarbox: {ADA} has an account already.\n")


async def test_the_operator_helps_people_back_in_and_shuts_them_out(
    database_url: str, tmp_path: Path
) -> None:
    async with world(database_url, tmp_path, started=False) as pillarbox:
        here = Installation(database_url, tmp_path)
        ada = await a_person(await pillarbox.team(), ADA, TeamRole.ADMIN)
        browser = await logged_in(pillarbox, ada)
        done = await asyncio.to_thread(here.run, "people", "revoke-sessions", ADA)
        assert done.stdout == f"{ADA}: 1 session ended.\n"
        assert (await browser.get("/account")).status_code == 303
        link = (await asyncio.to_thread(here.run, "people", "reset", ADA)).stdout
        changed = await visit(pillarbox).send(path_in(link), password="a lighthouse in the fog")
        assert changed.headers["location"] == "/login?done=reset"
        ada = Person(ada.id, ada.email, "a lighthouse in the fog")
        browser = await logged_in(pillarbox, ada)
        assert (await asyncio.to_thread(here.run, "people", "disable", ADA)).stdout == f"{ADA} is disabled.\n"
        assert (await browser.get("/account")).status_code == 303
        assert (await visit(pillarbox).log_in(ada)).status_code == 403
        refused = await asyncio.to_thread(here.run, "people", "reset", ADA)
        assert (refused.exit_code, refused.stderr) == (1, f"pillarbox: {ADA} is disabled.\n")
        assert (await asyncio.to_thread(here.run, "people", "enable", ADA)).exit_code == 0
        assert heading(await (await logged_in(pillarbox, ada)).get("/account")) == "Your account"
        acts = [
            row["what"] for row in await pillarbox.pool.fetch("SELECT what FROM audit_entries ORDER BY id")
        ]
        assert [act for act in acts if act.startswith("person.")] == ["person.disabled", "person.enabled"]
        assert "login.ended_everywhere" in acts
        assert acts.count("login.failed") == 1


async def test_the_operator_gives_somebody_another_address(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as pillarbox:
        here = Installation(database_url, tmp_path)
        ada = await a_person(await pillarbox.team(), ADA, TeamRole.ADMIN)
        bob = await a_person(await pillarbox.team(), "bob@harbor.example", TeamRole.ADMIN)
        browser = await logged_in(pillarbox, ada)
        link = (await asyncio.to_thread(here.run, "people", "reset", ADA)).stdout
        done = await asyncio.to_thread(
            here.run, "people", "set-address", "ADA@harbor.example", "Ada@Quay.example"
        )
        assert done.stdout == f"{ADA} logs in with ada@quay.example from now on.\n"
        assert (await browser.get("/account")).status_code == 303
        assert (await visit(pillarbox).get(path_in(link))).status_code == 404
        assert (await visit(pillarbox).log_in(ada)).status_code == 403
        await logged_in(pillarbox, Person(ada.id, "ada@quay.example"))
        for new, said in (
            (bob.email, "There is a person with the address bob@harbor.example already.\n"),
            ("ada@QUAY.example", "ada@quay.example is the address already.\n"),
        ):
            refused = await asyncio.to_thread(here.run, "people", "set-address", "ada@quay.example", new)
            assert (refused.exit_code, refused.stderr) == (1, f"pillarbox: {said}")
        refused = await asyncio.to_thread(here.run, "people", "set-address", "ada@quay.example", "nothing")
        assert (refused.exit_code, "is not an email address" in refused.stderr) == (1, True)
        await asyncio.to_thread(here.run, "people", "disable", bob.email)
        refused = await asyncio.to_thread(here.run, "people", "set-address", bob.email, "b@quay.example")
        assert (refused.exit_code, refused.stderr) == (1, f"pillarbox: {bob.email} is disabled.\n")
        row = await pillarbox.pool.fetchrow(
            "SELECT target, actor, details::text FROM audit_entries WHERE what = 'address.changed'"
        )
        assert tuple(row) == (ADA, "operator", '{"address": "ada@quay.example"}')


async def test_the_operator_makes_an_account_an_operator(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as pillarbox:
        here = Installation(database_url, tmp_path)
        await a_person(await pillarbox.team(), ADA)
        for options, words, is_operator in (
            ([], "an operator", True),
            ([], "an operator", True),
            (["--remove"], "no operator", False),
        ):
            done = await asyncio.to_thread(here.run, "people", "operator", ADA, *options)
            assert done.stdout == f"{ADA} is {words} of this installation.\n"
            [listed] = (await asyncio.to_thread(here.json, "people", "list"))["data"]
            assert listed["is_operator"] is is_operator
        acts = await pillarbox.pool.fetch(
            "SELECT what, target, actor FROM audit_entries WHERE what LIKE 'operator.%' ORDER BY id"
        )
        assert [tuple(row) for row in acts] == [
            ("operator.added", ADA, "operator"),
            ("operator.removed", ADA, "operator"),
        ]


@pytest.mark.parametrize("command", ["reset", "revoke-sessions", "disable", "enable", "operator"])
def test_nobody_of_that_address_is_said(empty: Installation, command: str) -> None:
    done = empty.run("people", command, "nobody@harbor.example")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "pillarbox: There is nobody with the address nobody@harbor.example.\n"
    wrong = empty.run("people", command, "no address")
    assert wrong.exit_code == 1
    assert wrong.stderr.startswith("pillarbox: 'no address' is not an email address.")
