"""`pillarbox segments list` and `pillarbox topics list`."""

from __future__ import annotations

import asyncio

import pytest

from cli.conftest import Installation
from kit.audience import a_segment, a_topic, chooses, joins, some_contacts
from kit.world import world


@pytest.fixture
def audience(harbor: Installation) -> Installation:
    asyncio.run(fill(harbor))
    return harbor


async def fill(harbor: Installation) -> None:
    """A team with a segment of three and an empty one, a topic with choices, and one that is deleted."""
    async with world(harbor.url, harbor.folder, started=False) as here:
        team = await here.team("Audience")
        contacts = await some_contacts(team, 3)
        await joins(team, await a_segment(team, "Beta"), contacts)
        await a_segment(team, "\x1b[31mRed")
        topic, gone = await a_topic(team, "opt_in", "Tides"), await a_topic(team, "opt_out", "Winds")
        for one in (topic, gone):
            await chooses(team, contacts[0], one, "opt_in")
            await chooses(team, contacts[1], one, "opt_out")
            await chooses(team, contacts[2], one, "opt_out")
        assert (await team.call("DELETE", f"/topics/{gone}")).status_code == 200


def test_segments_with_their_members(audience: Installation) -> None:
    found = audience.json("segments", "list", "--team", "Audience")["data"]
    assert [(one["name"], one["members"]) for one in found] == [("\x1b[31mRed", 0), ("Beta", 3)]
    shown = audience.run("segments", "list", "--team", "Audience")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0].split() == ["Id", "Name", "Members", "Created"]
    assert "\x1b" not in shown.stdout


def test_topics_with_what_was_chosen(audience: Installation) -> None:
    [found] = audience.json("topics", "list", "--team", "Audience")["data"]
    assert (found["name"], found["joined"], found["refused"]) == ("Tides", 1, 2)
    [head, row] = audience.run("topics", "list", "--team", "Audience").stdout.splitlines()
    assert head.split() == ["Id", "Name", "Default", "Visibility", "Joined", "Left", "Created"]
    assert row.split()[1:6] == ["Tides", "opt_in", "public", "1", "2"]


def test_a_team_without_any(audience: Installation) -> None:
    for words in ("segments", "topics"):
        shown = audience.run(words, "list", "--team", "Harbor").stdout
        assert shown == f"The team 'Harbor' has no {words}.\n"
        assert audience.json(words, "list", "--team", "Harbor") == {"object": "list", "data": []}
