"""Members of teams, invitations and the log of acts by command."""

from __future__ import annotations

from typing import Any

import pytest

from cli.conftest import Installation


def a_team(place: Installation, name: str = "Harbor") -> Any:
    return place.json("teams", "create", name, "--email", "ada@harbor.example")


def person(place: Installation, email: str, *options: str) -> Any:
    return place.json("people", "create", email, *options)


def roles(place: Installation) -> dict[str, tuple[str, str]]:
    """Role and account of each member by address."""
    return {one["email"]: (one["role"], one["account"]) for one in place.json("people", "members")["data"]}


def test_members_are_listed_changed_and_taken_out(empty: Installation) -> None:
    a_team(empty)
    assert roles(empty) == {"ada@harbor.example": ("owner", "none")}
    person(empty, "ada@harbor.example")
    person(empty, "bo@harbor.example", "--role", "viewer")
    assert roles(empty) == {
        "ada@harbor.example": ("owner", "active"),
        "bo@harbor.example": ("viewer", "active"),
    }
    assert empty.run("people", "set-role", "BO@harbor.example", "admin").exit_code == 0
    assert roles(empty)["bo@harbor.example"] == ("admin", "active")
    assert empty.run("people", "remove", "bo@harbor.example").exit_code == 0
    assert roles(empty).keys() == {"ada@harbor.example"}
    assert "ada@harbor.example" in empty.run("people", "members").stdout


def test_the_first_member_keeps_nobody_from_being_changed(empty: Installation) -> None:
    """The first start makes a member whose address no mail goes to."""
    a_team(empty)
    empty.sql("UPDATE team_members SET email = 'admin@localhost' WHERE true")
    person(empty, "bo@harbor.example")
    person(empty, "cy@harbor.example")
    assert empty.run("people", "set-role", "bo@harbor.example", "viewer").exit_code == 0
    assert empty.run("people", "remove", "admin@LOCALHOST").exit_code == 0
    assert empty.run("people", "remove", "admin@localhost").stderr.startswith(
        "pillarbox: 'admin@localhost' is not an email address."
    )
    assert roles(empty).keys() == {"bo@harbor.example", "cy@harbor.example"}


def test_the_last_owner_stays(empty: Installation) -> None:
    a_team(empty)
    person(empty, "ada@harbor.example")
    for command in (["set-role", "ada@harbor.example", "viewer"], ["remove", "ada@harbor.example"]):
        done = empty.run("people", *command)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == "pillarbox: The team 'Harbor' needs an owner who can log in.\n"
    person(empty, "bo@harbor.example")
    empty.run("people", "disable", "bo@harbor.example")
    assert empty.run("people", "remove", "ada@harbor.example").exit_code == 1
    empty.run("people", "enable", "bo@harbor.example")
    assert empty.run("people", "remove", "ada@harbor.example").exit_code == 0


def test_an_invitation_is_a_link_that_is_printed_once(empty: Installation) -> None:
    team = a_team(empty)
    made = empty.json("people", "invite", "cy@quay.example", "--role", "admin")
    assert made["email"] == "cy@quay.example"
    token = made["url"].rpartition("/invitation/")[2]
    [row] = empty.sql("SELECT team_id, role, email FROM team_invitations")
    assert (str(row["team_id"]), row["role"], row["email"]) == (team["id"], "admin", "cy@quay.example")
    [link] = empty.sql("SELECT kind, hash FROM person_links WHERE team_id IS NOT NULL")
    assert link["kind"] == "invitation"
    assert token.encode() not in bytes(link["hash"])
    assert token not in empty.run("people", "audit", "--json").stdout


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["invite", "nobody"], "'nobody' is not an email address."),
        (["invite", "ada@harbor.example"], "ada@harbor.example belongs to the team 'Harbor' already."),
        (["remove", "cy@quay.example"], "cy@quay.example does not belong to the team 'Harbor'."),
        (["set-role", "cy@quay.example", "owner"], "cy@quay.example does not belong to the team 'Harbor'."),
        (["members", "--team", "Quay"], "There is no team 'Quay'."),
    ],
)
def test_what_cannot_be_done_is_said(empty: Installation, command: list[str], said: str) -> None:
    a_team(empty)
    person(empty, "ada@harbor.example")
    done = empty.run("people", *command)
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr
    assert [row["role"] for row in empty.sql("SELECT role FROM team_members")] == ["owner"]


def test_the_log_says_what_the_operator_did(empty: Installation) -> None:
    a_team(empty)
    a_team(empty, "Quay")
    key = empty.json("keys", "create", "printer", "--team", "Harbor")["id"]
    for command in ("suspend", "suspend", "resume", "delete"):
        assert empty.run("keys", command, key).exit_code == 0
    empty.run("teams", "set", "Harbor", "--rate-limit", "7")
    for command in ("block", "block", "unblock"):
        assert empty.run("teams", command, "Quay").exit_code == 0
    person(empty, "bo@harbor.example", "--team", "Harbor")
    entries = empty.json("people", "audit")["data"][::-1]
    assert {entry["actor"] for entry in entries} == {"operator"}
    assert [entry["what"] for entry in entries] == [
        "team.created",
        "team.created",
        "key.created",
        "key.suspended",
        "key.resumed",
        "key.deleted",
        "team.limits_set",
        "team.blocked",
        "team.unblocked",
        "person.created",
        "member.added",
    ]
    of_team = empty.json("people", "audit", "--team", "Quay", "--limit", "2")["data"]
    assert [entry["what"] for entry in of_team] == ["team.unblocked", "team.blocked"]
    assert "printer" in empty.run("people", "audit").stdout


def test_exports_are_in_the_log(empty: Installation, tmp_path: Any) -> None:
    """SEC-07."""
    a_team(empty)
    empty.run("suppressions", "add", "gone@quay.example")
    for group in ("contacts", "suppressions"):
        done = empty.run(group, "export", str(tmp_path / f"{group}.csv"))
        assert done.exit_code == 0, done.stderr
    empty.run("suppressions", "remove", "gone@quay.example")
    found = {entry["what"]: entry["details"] for entry in empty.json("people", "audit")["data"]}
    assert found["contacts.exported"] == {"count": 0}
    assert found["suppressions.exported"] == {"count": 1}
    assert found["suppressions.removed"] == {"count": 1}
