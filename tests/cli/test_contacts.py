"""`pillarbox contacts show` and `export`."""

from __future__ import annotations

import asyncio
import csv
import io
from pathlib import Path

import pytest

from cli.conftest import Installation
from kit.audience import a_property, a_segment, a_topic
from kit.world import world

BO = "bo@pier.example"
"""Has emails in the installation."""


@pytest.fixture
def audience(harbor: Installation) -> Installation:
    """Two contacts of the first team, one with everything that a contact may have."""
    asyncio.run(fill(harbor))
    return harbor


async def fill(harbor: Installation) -> None:
    async with world(harbor.url, harbor.folder, started=False) as here:
        team = await here.team("Quay")
        for key, kind in (("plan", "string"), ("seats", "number"), ("beta", "boolean")):
            await a_property(team, key, kind)
        segment, topic = await a_segment(team, "Beta testers"), await a_topic(team, "opt_in", "Tides")
        await a_topic(team, "opt_out", "Winds")
        new = {
            "email": BO,
            "first_name": "=cmd|'/c calc'!A1",
            "last_name": "\x1b[31mRed",
            "unsubscribed": True,
            "properties": {"plan": "-pro", "seats": -3, "beta": True},
            "segments": [str(segment)],
            "topics": [{"id": str(topic), "subscription": "opt_out"}],
        }
        assert (await team.post("/contacts", new)).status_code == 201
        assert (await team.post("/contacts", {"email": "+lin@orchard.example"})).status_code == 201
        await here.pool.execute(
            "INSERT INTO suppressions VALUES ($1, gen_random_uuid(), $2, 'bounce', NULL, now())", team.id, BO
        )


def test_a_contact_with_all_that_is_known_of_it(audience: Installation) -> None:
    [found] = audience.json("contacts", "show", BO.upper())["data"]
    assert found["team"]["name"] == "Quay"
    assert found["email"] == BO
    assert found["properties"] == {"beta": True, "plan": "-pro", "seats": -3}
    assert [one["name"] for one in found["segments"]] == ["Beta testers"]
    assert [(one["name"], one["subscription"], one["chosen_at"] is None) for one in found["topics"]] == [
        ("Winds", "opt_out", True),
        ("Tides", "opt_out", False),
    ]
    assert found["suppression"]["origin"] == "bounce"
    assert found["emails"] == []
    by_id = audience.json("contacts", "show", found["id"], "--team", "Quay")["data"]
    assert by_id == [found]


def test_for_people(audience: Installation) -> None:
    """Names are what others typed: no control character of them reaches the terminal."""
    shown = audience.run("contacts", "show", BO).stdout
    assert "Unsubscribed from everything." in shown
    assert "On the suppression list since" in shown
    for word in ("Beta testers", "the topic's default", "-pro", "Last emails to this address: none."):
        assert word in shown
    assert "\x1b" not in shown
    assert "\\x1b[31mRed" in shown


def test_the_last_emails_are_those_of_the_contacts_team(audience: Installation) -> None:
    audience.sql(
        """
        INSERT INTO contacts (team_id, id, address, unsubscribed, created_at, updated_at)
        SELECT team_id, gen_random_uuid(), $1, false, now(), now() FROM emails WHERE subject = 'mixed'
        """,
        BO,
    )
    found = audience.json("contacts", "show", BO)["data"]
    assert sorted([mail["subject"] for mail in one["emails"]] for one in found) == [[], ["mixed"]]


def test_who_is_no_contact(audience: Installation) -> None:
    for named in ("nobody@pier.example", "x", "\x1b@x"):
        done = audience.run("contacts", "show", named)
        assert done.exit_code == 1
        assert done.stderr.startswith("pillarbox: No team has a contact ")
        assert "\x1b" not in done.stderr


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_an_export_has_a_column_for_each_property(audience: Installation, tmp_path: Path) -> None:
    target = tmp_path / "contacts.csv"
    done = audience.run("contacts", "export", str(target), "--team", "Quay")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"{target}: 2 rows in ")
    bo, lin = rows_of(target.read_text())
    assert list(bo) == [
        "email", "first_name", "last_name", "unsubscribed", "created_at", "id", "beta", "plan", "seats"
    ]  # fmt: skip
    assert (bo["email"], bo["unsubscribed"], bo["beta"], bo["seats"]) == (BO, "true", "true", "-3")
    assert (lin["unsubscribed"], lin["first_name"], lin["plan"]) == ("false", "", "")
    assert list(tmp_path.glob("*.part")) == []


def test_no_cell_is_a_formula_unless_it_is_asked_for(audience: Installation) -> None:
    """CSV-03."""
    bo, lin = rows_of(audience.run("contacts", "export", "-", "--team", "Quay").stdout)
    assert bo["first_name"] == "'=cmd|'/c calc'!A1"
    assert bo["plan"] == "'-pro"
    assert lin["email"] == "'+lin@orchard.example"
    bo, lin = rows_of(audience.run("contacts", "export", "-", "--team", "Quay", "--plain").stdout)
    assert bo["first_name"] == "=cmd|'/c calc'!A1"
    assert lin["email"] == "+lin@orchard.example"


def test_an_export_of_a_segment(audience: Installation) -> None:
    [(segment,)] = audience.sql("SELECT id FROM segments")
    done = audience.run("contacts", "export", "-", "--team", "Quay", "--segment", str(segment))
    assert [row["email"] for row in rows_of(done.stdout)] == [BO]
    for wrong in ("x", "00000000-0000-7000-8000-000000000000"):
        refused = audience.run("contacts", "export", "-", "--team", "Quay", "--segment", wrong)
        assert refused.exit_code == 1
        assert "segment" in refused.stderr


def test_a_file_that_cannot_be_written(audience: Installation, tmp_path: Path) -> None:
    done = audience.run("contacts", "export", str(tmp_path / "no" / "folder.csv"), "--team", "Quay")
    assert done.exit_code == 1
    assert "cannot be written" in done.stderr
