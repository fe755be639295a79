"""`pillarbox events list|show|send`."""

from __future__ import annotations

import json
from typing import Any

from cli.conftest import Installation

OURS = ("--team", "Harbor")
NAME = "a\u2028b"
"""With a character that a terminal would not show."""


def test_sending_an_event_and_seeing_it_wait(harbor: Installation) -> None:
    """Nobody distributes here, so it stays."""
    assert harbor.run("events", "list", *OURS).stdout == "The team 'Harbor' has no events.\n"
    sent = harbor.run(
        *("events", "send", "user.signed_up", "--email", "Ada@Quay.example", *OURS),
        *("--payload", '{"plan": "pro"}'),
    )
    assert (sent.exit_code, sent.stdout) == (0, "Sent user.signed_up to the team 'Harbor'.\n")
    [[name, address, payload]] = harbor.sql("SELECT name, address, payload::text FROM events")
    assert (name, address, json.loads(payload)) == ("user.signed_up", "ada@quay.example", {"plan": "pro"})
    assert harbor.sql("SELECT count(*) FROM jobs WHERE kind = 'events.distribute'")[0][0] == 1
    [found] = harbor.json("events", "list", *OURS)["data"]
    assert (found["name"], found["id"], found["schema"]) == ("user.signed_up", None, None)
    assert (found["waiting"], found["failed"]) == (1, 0)
    [head, row] = harbor.run("events", "list", *OURS).stdout.splitlines()
    assert head.split() == ["Name", "Id", "Schema", "Waiting", "Oldest", "Failed"]
    assert row.split()[:4] == ["user.signed_up", "-", "-", "1"]


def test_a_definition_and_those_that_failed(harbor: Installation) -> None:
    harbor.sql(
        """
        INSERT INTO event_definitions (team_id, id, name, schema, created_at, updated_at)
        SELECT id, '9f8e7d6c-5b4a-4938-8271-605f4e3d2c1b', $1, '{"n":"number"}', now(), now()
          FROM teams WHERE name = 'Harbor'
        """,
        NAME,
    )
    harbor.sql(
        """
        INSERT INTO events (team_id, id, partition, name, address, payload, at, tries, failed_at, reason)
        SELECT id, gen_random_uuid(), 0, $1, 'ada@quay.example', '{}', now(), 5, now(), 'internal_error'
          FROM teams WHERE name = 'Harbor'
        """,
        NAME,
    )
    shown = harbor.run("events", "show", "9F8E7D6C-5b4a-4938-8271-605f4e3d2c1b", *OURS)
    assert shown.exit_code == 0
    assert "a\\u2028b" in shown.stdout
    assert "Schema   n: number" in shown.stdout
    assert "internal_error" in shown.stdout
    found: dict[str, Any] = harbor.json("events", "show", NAME, *OURS)
    assert (found["schema"], found["failed"], found["waiting"]) == ({"n": "number"}, 1, 0)
    [failed] = found["last_failed"]
    assert (failed["email"], failed["tries"], failed["reason"]) == ("ada@quay.example", 5, "internal_error")


def test_what_is_wrong_is_one_line_and_nothing_is_stored(harbor: Installation) -> None:
    before = harbor.sql("SELECT count(*) FROM events")
    for arguments, says in (
        (("show", "unknown"), "has no event 'unknown'"),
        (("send", "x"), "Missing `contact_id` or `email` field."),
        (("send", "resend:x", "--email", "ada@quay.example"), "reserved"),
        (("send", "x", "--email", "nobody"), "Invalid `email` field."),
        (("send", "x", "--email", "ada@quay.example", "--payload", "{"), "is not JSON"),
        (("send", "x", "--email", "ada@quay.example", "--payload", "[]"), "Invalid `payload` field."),
        (("send", "x", "--contact", "5"), "must be a valid UUID"),
        (("send", "x", "--contact", "9f8e7d6c-5b4a-4938-8271-605f4e3d2c1b"), "Contact not found"),
        (("send", "x", "--email", "ada@quay.example"), "There are several teams"),
    ):
        ours = () if "several" in says else OURS
        refused = harbor.run("events", *arguments, *ours)
        assert refused.exit_code == 1, arguments
        assert says in refused.stderr, arguments
        assert len(refused.stderr.splitlines()) == 1
    assert harbor.sql("SELECT count(*) FROM events") == before
