"""`pillarbox queue pause|resume|drop`."""

from __future__ import annotations

import pytest

from cli.conftest import Installation


def test_a_pause_is_shown_with_its_reason_until_it_is_lifted(harbor: Installation) -> None:
    done = harbor.run(
        "queue", "pause", "--team", "Harbor", "--domain", "Deaf.Example", "--reason", "new relay"
    )
    assert done.stdout == "Paused: mail to deaf.example of Harbor.\n"
    [line, *_] = harbor.run("queue").stdout.splitlines()
    assert line.startswith("Paused since ")
    assert line.endswith("Z: mail to deaf.example of Harbor. Reason: new relay.")
    assert "Paused since" not in harbor.run("queue", "--domain", "quay.example").stdout
    [shape] = harbor.json("queue")["paused"]
    assert (shape["destination"], shape["reason"]) == ("deaf.example", "new relay")
    again = harbor.run("queue", "pause", "--team", "Harbor", "--domain", "deaf.example")
    assert again.stdout == "Already paused: mail to deaf.example of Harbor.\n"
    lifted = harbor.run("queue", "resume", "--team", "Harbor", "--domain", "deaf.example")
    assert lifted.stdout == "Resumed: mail to deaf.example of Harbor.\n"
    assert harbor.json("queue")["paused"] == []


def test_a_wider_pause_still_holds(harbor: Installation) -> None:
    harbor.run("queue", "pause", "--all")
    harbor.run("queue", "pause", "--domain", "deaf.example")
    done = harbor.run("queue", "resume", "--domain", "deaf.example")
    assert done.stdout.splitlines() == [
        "Resumed: mail to deaf.example.",
        "It is still held back, because all mail is paused.",
    ]
    assert harbor.run("queue", "resume", "--all").stdout == "1 pause is lifted.\n"


def test_paused_mail_that_is_due_says_so(harbor: Installation) -> None:
    harbor.sql("UPDATE deliveries SET due_at = now() - interval '1 minute' WHERE released")
    harbor.run("queue", "pause", "--team", "Harbor")
    found = harbor.json("queue", "--all")
    assert found["totals"]["due"] == 0
    held = [item for item in found["items"] if item["condition"] == "paused"]
    assert len(held) == found["totals"]["paused"] > 0
    assert {item["why"] for item in held} == {"Held back by the operator."}


def test_a_drop_ends_mail_and_tells_what_it_left(harbor: Installation) -> None:
    harbor.sql(
        "UPDATE deliveries SET owner = gen_random_uuid(), leased_until = now() + interval '1 hour' "
        "WHERE destination = 'deaf.example'"
    )
    asked = harbor.run("queue", "drop", "--team", "Harbor")
    assert asked.exit_code == 1
    assert harbor.json("queue")["totals"]["items"] == 5
    done = harbor.run("queue", "drop", "--team", "Harbor", "--yes")
    assert done.stdout.splitlines() == [
        "4 items are dropped.",
        "1 item is left: delivery processes held them.",
    ]
    assert harbor.sql("SELECT count(*) FROM deliveries")[0]["count"] == 1
    email = harbor.email("scheduled")
    shown = harbor.run("emails", "show", email).stdout
    assert "The operator of this installation dropped it from the queue." in shown
    assert harbor.run("verify").exit_code == 0


@pytest.mark.parametrize("command", ["pause", "resume", "drop"])
def test_what_is_meant_must_be_said(harbor: Installation, command: str) -> None:
    for options in ([], ["--all", "--domain", "quay.example"]):
        done = harbor.run("queue", command, *options)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "Name a --team, a --domain or both" in done.stderr


def test_resuming_what_is_not_paused_is_an_error(harbor: Installation) -> None:
    done = harbor.run("queue", "resume", "--domain", "quay.example")
    assert (done.exit_code, done.stderr) == (1, "pillarbox: Nothing is paused there.\n")


def test_a_quarantined_email_is_listed_and_retried(harbor: Installation) -> None:
    email = harbor.email("unreached")
    harbor.sql(
        "UPDATE deliveries SET due_at = '9998-01-01Z', reason = 'Three processes ended.', begun = 3 "
        "WHERE email_id = $1",
        harbor.sql("SELECT $1::uuid AS id", email)[0]["id"],
    )
    [item] = harbor.json("queue", "--all", "--email", email)["items"]
    assert (item["condition"], item["next_attempt_at"]) == ("quarantined", None)
    assert item["why"].startswith("Three processes ended.")
    assert "1 item is tried now." in harbor.run("queue", "retry", "--email", email).stdout
    [row] = harbor.sql(
        "SELECT begun, reason, due_at <= now() AS due FROM deliveries WHERE destination = 'deaf.example'"
    )
    assert tuple(row) == (0, None, True)
