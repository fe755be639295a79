"""`pillarbox contacts import`, beside no server: the command does the import itself."""

from __future__ import annotations

import json
from pathlib import Path

from cli.conftest import Installation

MAP = (
    "--map",
    "email=E-mail",
    "--map",
    "first_name=Name",
    "--map",
    "seats:number=Seats",
    "--map",
    "plan=Plan",
)


def test_a_file_becomes_contacts_and_a_file_of_errors(harbor: Installation, tmp_path: Path) -> None:
    team = harbor.sql("SELECT id, name FROM teams ORDER BY id LIMIT 1")[0]
    segment = "0199a3c2-0000-7000-8000-000000000002"
    topic = "0199a3c2-0000-7000-8000-000000000003"
    harbor.sql("INSERT INTO segments VALUES ($1, $2::text::uuid, 'All', now())", team["id"], segment)
    harbor.sql(
        "INSERT INTO topics VALUES ($1, $2::text::uuid, 'T', NULL, 'opt_in', 'public', now(), now())",
        team["id"],
        topic,
    )
    source, errors = tmp_path / "people.csv", tmp_path / "errors.csv"
    source.write_text("E-mail;Name;Seats;Plan\nann@cli.example;Ann;3;pro\nbad;Bea;;\ncy@cli.example;;x;\n")
    places = ("--segment", segment, "--topic", f"{topic}=opt_out", "--team", team["name"])
    done = harbor.run("contacts", "import", str(source), *MAP, *places, "--errors", str(errors))
    assert done.exit_code == 1, done.stderr
    assert "1 created, 0 updated, 0 skipped, 2 failed." in done.stdout
    assert "rows/s" in done.stdout
    assert errors.read_text().splitlines() == [
        "row,email,reason",
        "2,bad,invalid_email",
        "3,cy@cli.example,invalid_number",
    ]
    [ann] = harbor.sql("SELECT * FROM contacts WHERE address = 'ann@cli.example'")
    assert json.loads(ann["properties"]) in ({"1": 3, "2": "pro"}, {"1": "pro", "2": 3})
    members = "SELECT count(*) AS n FROM segment_members WHERE contact_id = $1"
    assert harbor.sql(members, ann["id"])[0]["n"] == 1
    chosen = "SELECT subscription FROM topic_choices WHERE contact_id = $1"
    assert harbor.sql(chosen, ann["id"])[0]["subscription"] == "opt_out"
    again = harbor.run(
        "contacts", "import", str(source), *MAP, "--on-conflict", "skip", "--team", team["name"]
    )
    assert "0 created, 0 updated, 1 skipped, 2 failed." in again.stdout
    assert "The first: row 2, invalid_email." in again.stdout
    assert harbor.sql("SELECT count(*) AS n FROM jobs WHERE kind = 'contacts.import'")[0]["n"] == 0


def test_what_is_refused_is_said_in_one_line(harbor: Installation, tmp_path: Path) -> None:
    team = harbor.sql("SELECT name FROM teams ORDER BY id LIMIT 1")[0]["name"]
    source = tmp_path / "people.csv"
    source.write_text("mail\nann@cli.example\n")
    cases = {
        (str(tmp_path / "none.csv"),): "none.csv cannot be read: No such file",
        (str(source),): 'CSV missing required "email" column',
        (str(source), "--map", "email"): "--map email is not of the form FIELD=COLUMN",
        (str(source), "--map", "a b=mail"): "Use 1 to 50 letters",
        (str(source), "--on-conflict", "merge"): "`on_conflict`",
        (str(source), "--segment", "x"): "valid UUID",
    }
    for arguments, words in cases.items():
        done = harbor.run("contacts", "import", *arguments, "--team", team)
        assert done.exit_code == 1, arguments
        assert done.stderr.startswith("pillarbox: "), done.stderr
        assert words in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1
    assert harbor.sql("SELECT count(*) AS n FROM contact_imports")[0]["n"] == 0


def test_a_file_that_cannot_be_read_on(harbor: Installation, tmp_path: Path) -> None:
    team = harbor.sql("SELECT name FROM teams ORDER BY id LIMIT 1")[0]["name"]
    source = tmp_path / "people.csv"
    source.write_bytes(b'email\nann@cli.example\n"bo@cli.example\n')
    done = harbor.run("contacts", "import", str(source), "--team", team)
    assert done.exit_code == 1
    assert "The file could not be read to its end: unclosed_quote in row 2." in done.stdout
