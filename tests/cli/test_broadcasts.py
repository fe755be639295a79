"""`pillarbox broadcasts`."""

from __future__ import annotations

import asyncio
import re

import pytest

from cli.conftest import Installation
from kit.broadcasts import in_status, made
from kit.manual_world import manual_world

UNKNOWN = "0199a3c2-5f10-7b3e-9d44-0a6f2c1b7e90"


@pytest.fixture
def mailing(empty: Installation) -> Installation:
    asyncio.run(fill(empty))
    return empty


async def fill(here: Installation) -> None:
    """A team with a broadcast in every state that a command is about."""
    async with manual_world(here.url, here.folder) as pillarbox:
        team = await pillarbox.team("Harbor")
        await made(team, name="Draft")
        for status in ("scheduled", "queued", "sent", "failed"):
            broadcast_id = await in_status(team, status)
            await team.call("PATCH", f"/broadcasts/{broadcast_id}", {"name": status.capitalize()})


def id_of(here: Installation, name: str) -> str:
    [(found,)] = here.sql("SELECT id FROM broadcasts WHERE name = $1", name)
    return str(found)


def said(here: Installation, *arguments: str) -> str:
    done = here.run("broadcasts", *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(here: Installation, *arguments: str) -> str:
    done = here.run("broadcasts", *arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    return done.stderr


def test_the_list_of_a_team(mailing: Installation) -> None:
    found = mailing.json("broadcasts", "list")["data"]
    assert [(one["name"], one["status"]) for one in found] == [
        ("Failed", "failed"),
        ("Sent", "sent"),
        ("Queued", "queued"),
        ("Scheduled", "scheduled"),
        ("Draft", "draft"),
    ]
    head, *rows = said(mailing, "list").splitlines()
    assert head.split() == ["Id", "Name", "Subject", "Status", "Recipients", "Created", "Scheduled", "Sent"]
    assert len(rows) == 5


def test_one_with_its_copies_and_why_it_failed(mailing: Installation) -> None:
    found = mailing.json("broadcasts", "show", id_of(mailing, "Queued"))
    assert (found["recipients"], found["copies"]) == (2, {"made": 0, "skipped": 0, "waiting": 2})
    shown = said(mailing, "show", id_of(mailing, "Queued"))
    assert "2 recipients: 0 made, 0 skipped, 2 waiting." in shown
    assert shown.splitlines()[2].split()[:3] == ["Received", "Sent", "Delivered"]
    failed = said(mailing, "show", id_of(mailing, "Failed"))
    assert failed.startswith(f"The broadcast {id_of(mailing, 'Failed')} is failed: The segment was deleted")
    assert mailing.json("broadcasts", "show", id_of(mailing, "Draft"))["counts"] is None


def test_a_draft_is_scheduled_taken_back_and_sent(mailing: Installation) -> None:
    draft = id_of(mailing, "Draft")
    assert re.search(r" is scheduled for \d{4}-", said(mailing, "send", draft, "--at", "in 1 hour"))
    assert said(mailing, "cancel", draft) == f"The broadcast {draft} is draft.\n"
    assert said(mailing, "send", draft) == f"The broadcast {draft} is queued.\n"
    assert "Only draft broadcasts can be sent." in refused(mailing, "send", draft)
    assert said(mailing, "cancel", draft) == f"The broadcast {draft} is canceled.\n"
    assert "Only queued or scheduled" in refused(mailing, "cancel", draft)
    for wrong in ("whenever", "in 40 days"):
        assert refused(mailing, "send", draft, "--at", wrong).startswith("pillarbox: Invalid `--at` option. ")


def test_one_is_paused_with_a_reason_and_resumed(mailing: Installation) -> None:
    queued = id_of(mailing, "Queued")
    assert said(mailing, "pause", queued, "--reason", "Wrong link.").endswith(" is paused: Wrong link.\n")
    assert "only once" in refused(mailing, "pause", queued)
    assert said(mailing, "resume", queued) == f"The broadcast {queued} is queued.\n"
    assert "not paused" in refused(mailing, "resume", queued)
    assert "being sent" in refused(mailing, "pause", id_of(mailing, "Sent"))
    assert said(mailing, "pause", queued, "--team", "Harbor").endswith("is paused: Paused by the operator.\n")
    assert said(mailing, "show", queued, "--follow").startswith(f"The broadcast {queued} is paused")


def test_one_whose_job_has_ended_its_process_too_often_is_resumed(mailing: Installation) -> None:
    queued = id_of(mailing, "Queued")
    said(mailing, "pause", queued)
    said(mailing, "resume", queued)
    mailing.sql("UPDATE jobs SET attempt = tries + 3, begun = 3 WHERE kind LIKE 'broadcast.%'")
    assert f"The broadcast {queued} is queued, and no job" in mailing.run("verify").output
    assert said(mailing, "resume", queued) == f"The broadcast {queued} is queued.\n"
    assert f"{queued} is queued, and no job" not in mailing.run("verify").output
    assert "not paused" in refused(mailing, "resume", queued)


def test_one_that_is_not_there(mailing: Installation) -> None:
    for words in (("show",), ("send",), ("cancel",), ("pause",), ("resume",)):
        assert f"There is no broadcast {UNKNOWN}." in refused(mailing, *words, UNKNOWN)
        assert "is not the id of a broadcast" in refused(mailing, *words, "x")
