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


def made_key(place: Installation, maker: str) -> str:
    """The id of a key that acts for a person."""
    key = str(place.json("keys", "create", f"of {maker}")["id"])
    place.sql(
        f"UPDATE api_keys SET created_by = (SELECT id FROM people WHERE email = '{maker}') WHERE id = '{key}'"
    )
    return key


def key_states(place: Installation) -> dict[str, str]:
    """The status of each of these keys by id."""
    keys = place.json("keys", "list")["data"]
    return {key["id"]: key["status"] for key in keys if key["name"].startswith("of ")}


def test_keys_of_who_is_taken_out_end_unless_they_are_kept(empty: Installation) -> None:
    """api-keys.md: a key acts for who made it."""
    a_team(empty)
    person(empty, "bo@harbor.example", "--role", "admin")
    first, second = made_key(empty, "bo@harbor.example"), made_key(empty, "bo@harbor.example")
    assert empty.run("keys", "keep", first).exit_code == 0
    assert empty.run("keys", "keep", first).exit_code == 0, "of the team's own nothing changes"
    assert empty.run("keys", "keep", "01a21967-883b-73cc-8ef8-61df3b54e863").exit_code == 1
    done = empty.run("people", "remove", "bo@harbor.example")
    assert f"pillarbox keys keep {second}" in done.output
    assert first not in done.output
    assert key_states(empty) == {first: "active", second: "ended"}
    assert empty.run("keys", "keep", second).exit_code == 0
    assert key_states(empty) == {first: "active", second: "active"}
    kept = [entry for entry in empty.json("people", "audit")["data"] if entry["what"] == "key.kept"]
    assert [entry["details"]["id"] for entry in kept] == [second, first]


@pytest.mark.parametrize(("option", "left"), [("--keep-keys", "active"), ("--delete-keys", None)])
def test_who_is_taken_out_leaves_keys_or_none(empty: Installation, option: str, left: str | None) -> None:
    a_team(empty)
    person(empty, "bo@harbor.example", "--role", "admin")
    key = made_key(empty, "bo@harbor.example")
    refused = empty.run("people", "remove", "bo@harbor.example", "--keep-keys", "--delete-keys")
    assert refused.exit_code == 2
    assert key_states(empty) == {key: "active"}
    assert empty.run("people", "remove", "bo@harbor.example", option).exit_code == 0
    assert key_states(empty).get(key) == left


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
