"""`pillarbox queue` and `pillarbox emails`: what waits, why, and what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from cli.conftest import Installation
from kit.smtp_sink import Sink
from kit.world import Team, World, world
from kit.zone import Zone
from pillarbox.delivery.items import EVERY_TEAM, QUARANTINED
from pillarbox.delivery.plugin import CHANNEL

ZONE = """
quay.example     MX 10 mx.quay.example
mx.quay.example  A  127.0.0.1
"""


def conditions(place: Installation) -> dict[str, str]:
    """The condition of each waiting email by its subject."""
    subjects = {str(row["id"]): row["subject"] for row in place.sql("SELECT id, subject FROM emails")}
    items = place.json("queue", "--all")["items"]
    return {subjects[item["email_id"]]: item["condition"] for item in items}


def test_every_item_says_what_it_waits_for(harbor: Installation) -> None:
    harbor.sql("UPDATE deliveries SET due_at = now() + interval '1 hour' WHERE reason IS NOT NULL")
    harbor.sql("UPDATE deliveries SET due_at = now() + interval '9 days' WHERE NOT released")
    assert conditions(harbor) == {
        "mixed": "retry",
        "unreached": "retry",
        "scheduled": "scheduled",
        "remote file": "fetching",
    }


def test_a_smarthost_that_refuses_us_is_the_first_line(harbor: Installation) -> None:
    """OUT-22."""
    reason = "The smarthost smart.example refuses our user name or password (535 5.7.8 No.)."
    assert harbor.json("queue")["held"] is None
    harbor.sql("UPDATE deliveries SET reason = $1 WHERE destination = 'deaf.example'", reason)
    assert harbor.run("queue").stdout.splitlines()[0] == f"All mail waits. {reason}"
    assert harbor.json("queue")["held"] == reason


def test_the_queue_is_told_by_destination_with_reason_and_totals(harbor: Installation) -> None:
    harbor.sql("UPDATE deliveries SET due_at = now() + interval '62 minutes' WHERE reason IS NOT NULL")
    harbor.sql("UPDATE deliveries SET due_at = now() + interval '9 days' WHERE NOT released")
    done = harbor.run("queue")
    assert done.exit_code == 0
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if ".example" in line}
    assert rows.keys() == {"quay.example", "pier.example", "deaf.example"}
    assert "in 1 h 1 m" in rows["deaf.example"]
    assert rows["deaf.example"].endswith("1 to be tried again. The mailbox is full at the moment.")
    last = done.stdout.splitlines()[-1]
    assert last.startswith(
        "5 items for 3 destinations: 2 to be tried again, 2 scheduled, 1 waiting for an attachment; "
    )
    totals = harbor.json("queue", "--domain", "quay.example")["totals"]
    assert (totals["items"], totals["retry"], totals["scheduled"], totals["fetching"]) == (3, 1, 1, 1)


def test_one_item_carries_attempts_answer_and_next_attempt(harbor: Installation) -> None:
    email = harbor.email("unreached")
    [item] = harbor.json("queue", "--all", "--email", email)["items"]
    assert item["attempts"] == 4
    assert item["last_host"] == "mx.quay.example"
    assert item["last_reply"] == "452 4.2.2 mailbox full"
    assert item["reason"] == "The mailbox is full at the moment."
    shown = harbor.run("queue", "--all", "--email", email).stdout
    assert "mx.quay.example: 452 4.2.2 mailbox full" in shown


def test_another_teams_queue_is_left_out_when_one_is_named(harbor: Installation) -> None:
    assert harbor.run("queue", "--team", "Lighthouse").stdout == "Nothing waits.\n"
    assert harbor.json("queue", "--team", "Harbor")["totals"]["items"] == 5


def test_mail_that_is_due_while_no_process_delivers_is_said(harbor: Installation) -> None:
    assert harbor.run("queue").stdout.splitlines()[-1] == (
        "No delivery process runs: start `pillarbox serve` with the role delivery."
    )
    harbor.sql(
        "INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at) "
        "VALUES (gen_random_uuid(), 'elsewhere', 1, 1, 'api,delivery', now(), now())"
    )
    assert "No delivery process" not in harbor.run("queue").stdout


def test_options_before_the_subcommand_are_refused(harbor: Installation) -> None:
    """Left out silently, they would retry the mail of every team."""
    before = harbor.sql("SELECT email_id, grp, due_at FROM deliveries ORDER BY 1, 2")
    assert harbor.run("queue", "--team", "Harbor", "retry").exit_code == 2
    assert harbor.sql("SELECT email_id, grp, due_at FROM deliveries ORDER BY 1, 2") == before


def due_times(place: Installation) -> dict[str, datetime]:
    rows = place.sql(
        "SELECT e.subject || d.grp AS item, d.due_at FROM deliveries d JOIN emails e ON e.id = d.email_id"
    )
    return {row["item"]: row["due_at"] for row in rows}


def changed(place: Installation, *arguments: str) -> set[str]:
    """The items whose time `queue retry` moves."""
    before = due_times(place)
    done = place.run("queue", "retry", *arguments)
    assert done.exit_code == 0, done.stderr
    after = due_times(place)
    return {item for item in before if before[item] != after[item]}


@pytest.fixture
def waiting(harbor: Installation) -> Installation:
    """The same with times that are still ahead."""
    harbor.sql("UPDATE deliveries SET due_at = now() + interval '2 hours' WHERE reason IS NOT NULL")
    harbor.sql("UPDATE deliveries SET due_at = now() + interval '9 days' WHERE NOT released")
    return harbor


def test_retry_moves_what_waits_for_an_attempt_and_nothing_else(waiting: Installation) -> None:
    """A scheduled email is not sent early, and one without its attachment is not sent without it."""
    assert changed(waiting) == {"mixed0", "unreached0"}
    said = waiting.run("queue", "retry").stdout.splitlines()
    assert said == [
        "0 items are tried now.",
        "Left as they are: 2 scheduled, 1 waiting for an attachment.",
    ]


def test_retry_leaves_alone_what_a_process_holds(waiting: Installation) -> None:
    waiting.sql(
        "UPDATE deliveries SET owner = gen_random_uuid(), leased_until = now() + interval '20 seconds' "
        "WHERE destination = 'deaf.example'"
    )
    assert changed(waiting) == {"mixed0"}


def test_what_was_put_aside_says_so_and_goes_once_more_by_hand(waiting: Installation) -> None:
    """DUR-13: an item that ended its processes waits for the operator."""
    email = waiting.email("mixed")
    waiting.sql(
        "UPDATE deliveries SET due_at = $2, reason = 'It was fatal.' WHERE email_id = $1::uuid",
        email,
        QUARANTINED,
    )
    [item] = waiting.json("queue", "--all", "--email", email)["items"]
    assert (item["condition"], item["next_attempt_at"]) == ("quarantined", None)
    assert item["why"] == "It was fatal. `queue retry` lets it go once more."
    assert changed(waiting, "--email", email) == {"mixed0"}
    assert waiting.json("queue", "--email", email)["totals"]["due"] == 1


def test_what_is_paused_says_so(harbor: Installation) -> None:
    harbor.sql(
        "INSERT INTO paused (team_id, destination, paused_at) VALUES ($1, 'deaf.example', now())", EVERY_TEAM
    )
    assert conditions(harbor)["unreached"] == "paused"
    assert conditions(harbor)["mixed"] == "due"
    shown = harbor.run("queue", "--all", "--domain", "deaf.example").stdout
    assert "Held back by the operator." in shown


def test_retry_can_be_narrowed(waiting: Installation) -> None:
    assert changed(waiting, "--domain", "Deaf.Example") == {"unreached0"}
    assert changed(waiting, "--email", waiting.email("mixed")) == {"mixed0"}


@pytest.mark.parametrize(
    "narrowed", [["--team", "Lighthouse"], ["--domain", "nowhere.example"], ["--email", str(uuid4())]]
)
def test_retry_where_nothing_waits_is_an_error(waiting: Installation, narrowed: list[str]) -> None:
    done = waiting.run("queue", "retry", *narrowed)
    assert (done.exit_code, done.stderr) == (1, "pillarbox: Nothing waits there.\n")


@asynccontextmanager
async def delayed(
    database_url: str, folder: Path
) -> AsyncIterator[tuple[World, Team, str, Installation, Sink]]:
    """A running Pillarbox with one email whose next attempt is a minute away."""
    async with (
        Sink() as sink,
        world(
            database_url,
            folder,
            zone=Zone(ZONE),
            route="direct",
            remote_smtp_port=str(sink.port),
            allow_private="127.0.0.0/8",
        ) as pillarbox,
    ):
        sink.script("RCPT", "452 4.2.2 mailbox full")
        team = await pillarbox.team()
        await team.domain()
        email = await team.send()
        async with asyncio.timeout(10):
            while (await team.email(email))["last_event"] != "delivery_delayed":
                await asyncio.sleep(0.01)
            # Commands look at what no process has any more.
            while await pillarbox.pool.fetchval("SELECT count(*) FROM deliveries WHERE owner IS NOT NULL"):
                await asyncio.sleep(0.01)
        yield pillarbox, team, email, Installation(database_url, folder), sink


async def test_retry_wakes_the_engines_and_the_mail_goes(database_url: str, tmp_path: Path) -> None:
    async with delayed(database_url, tmp_path) as (_, team, email, here, sink):
        heard = asyncio.Event()
        ear = await asyncpg.connect(database_url)
        await ear.add_listener(CHANNEL, lambda *_: heard.set())
        done = await asyncio.to_thread(here.run, "queue", "retry", "--email", email)
        assert done.stdout == "1 item is tried now.\n"
        await asyncio.wait_for(heard.wait(), 5)
        await ear.close()
        await sink.messages(1)
        assert (await team.settled(email))["last_event"] == "delivered"


async def test_an_email_that_waits_shows_why_and_when(database_url: str, tmp_path: Path) -> None:
    async with delayed(database_url, tmp_path) as (_, _, email, here, _):
        done = await asyncio.to_thread(here.run, "emails", "show", email)
        assert done.exit_code == 0
        lines = [line.rstrip() for line in done.stdout.splitlines()]
        assert f"Email:        {email}" in lines
        assert any(line.split() == ["ada@quay.example", "to", "delivery_delayed"] for line in lines)
        assert lines[-1].startswith("1 recipient at quay.example waiting for ")
        assert "The mailbox is full at the moment. 1 failed attempt. Next attempt in " in lines[-1]
        (delay,) = [line for line in lines if " delivery_delayed " in line and "452" in line]
        assert "mx.quay.example" in delay
        assert "452 4.2.2 mailbox full" in delay
        shown = await asyncio.to_thread(here.json, "emails", "show", email)
        assert [event["event"] for event in shown["events"]] == ["queued", "sent", "delivery_delayed"]
        assert shown["waiting"][0]["condition"] == "retry"
        assert shown["recipients"] == [
            {
                "address": "ada@quay.example",
                "role": "to",
                "state": "delivery_delayed",
                "bounce_type": None,
                "group": 0,
            }
        ]


def test_a_finished_email_shows_every_step(harbor: Installation) -> None:
    shown = harbor.run("emails", "show", harbor.email("simulated")).stdout
    assert "bounced@pillarbox.test     to  bounced (Permanent)" in shown
    assert "550 5.1.1 The simulator knows no such user." in shown
    assert "The address bounced before." in shown
    assert shown.splitlines()[-1] == "Nothing waits: every recipient has a final state."


def test_a_recipient_that_nothing_carries_is_pointed_out(harbor: Installation) -> None:
    email = harbor.email("scheduled")
    harbor.sql("DELETE FROM deliveries WHERE email_id = $1::uuid AND grp = 1", email)
    assert harbor.run("emails", "show", email).stdout.splitlines()[-1] == (
        "Nothing carries b@pier.example any more: `pillarbox verify` tells what is missing."
    )


@pytest.mark.parametrize("wanted", [str(uuid4()), "first"])
def test_an_email_that_is_not_there(harbor: Installation, wanted: str) -> None:
    done = harbor.run("emails", "show", wanted)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)


def test_the_newest_emails_of_all_teams_or_of_one(harbor: Installation) -> None:
    every = harbor.json("emails", "list")["data"]
    assert len(every) == 17
    assert [email["id"] for email in every] == sorted((email["id"] for email in every), reverse=True)
    assert [email["subject"] for email in harbor.json("emails", "list", "--limit", "2")["data"]] == [
        "keyless",
        "canceled",
    ]
    [only] = harbor.json("emails", "list", "--team", "Lighthouse")["data"]
    assert only["subject"] == "other team"
    line = harbor.run("emails", "list", "--team", "Lighthouse").stdout.splitlines()[1]
    assert line.split()[0] == only["id"]
    assert line.rstrip().endswith("delivered")
