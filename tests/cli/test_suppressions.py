"""`pillarbox suppressions`: the list without the API, files in and out, and why an address is on it."""

from __future__ import annotations

import csv
import io
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Installation
from pillarbox.suppressions.commands.csv_rows import (
    LONGEST_LINE,
    AddressRow,
    CsvRows,
    NotReadable,
    RefusedRow,
)
from pillarbox.suppressions.commands.transfer import BLOCK

GONE = "gone@quay.example"


def addresses(place: Installation, *options: str) -> list[str]:
    found = place.json("suppressions", "list", "--limit", "1000", *options)
    return [item["email"] for item in found["data"]]


@pytest.fixture
def one_team(empty: Installation) -> Installation:
    empty.json("teams", "create", "Harbor", "--email", "ada@harbor.example")
    return empty


# One by one ----------------------------------------------------------------------------------------


def test_adding_and_removing(one_team: Installation) -> None:
    done = one_team.run("suppressions", "add", " Kim@Orchard.example", "ann@bücher.example")
    assert (done.exit_code, done.stdout) == (
        0,
        "kim@orchard.example is now on the suppression list of Harbor.\n"
        "ann@bücher.example is now on the suppression list of Harbor.\n",
    )
    done = one_team.run("suppressions", "add", "KIM@orchard.example")
    assert done.stdout == "kim@orchard.example was already on the suppression list of Harbor.\n"
    assert addresses(one_team) == ["ann@bücher.example", "kim@orchard.example"]
    [_, entry] = one_team.json("suppressions", "list")["data"]
    assert list(entry) == ["id", "team_id", "email", "origin", "source_id", "created_at"]
    assert (entry["origin"], entry["source_id"]) == ("manual", None)
    done = one_team.run(
        "suppressions", "remove", entry["id"], "nobody@quay.example", "ann@xn--bcher-kva.example"
    )
    assert (done.exit_code, done.stdout) == (
        0,
        "kim@orchard.example (manual) is off the suppression list of Harbor.\n"
        "nobody@quay.example was not on the suppression list of Harbor.\n"
        "ann@bücher.example (manual) is off the suppression list of Harbor.\n",
    )
    assert addresses(one_team) == []


def test_what_is_no_address_is_refused_and_nothing_is_done(one_team: Installation) -> None:
    for command in ("add", "remove", "explain"):
        first = () if command == "explain" else ("kim@orchard.example",)
        done = one_team.run("suppressions", command, *first, "nobody")
        assert (done.exit_code, done.stdout) == (1, ""), command
        assert done.stderr.startswith("pillarbox: 'nobody' is "), done.stderr
    assert addresses(one_team) == []
    assert "name one with --team" in two_teams(one_team).run("suppressions", "add", "a@b.example").stderr


def two_teams(place: Installation) -> Installation:
    place.json("teams", "create", "Quay", "--email", "bob@quay.example")
    return place


def test_lists_of_several_teams_page_by_page(one_team: Installation) -> None:
    place = two_teams(one_team)
    for number in range(3):
        for team in ("Harbor", "Quay"):
            place.run("suppressions", "add", f"n{number}@{team.lower()}.example", "--team", team)
    first = place.run("suppressions", "list", "--limit", "4")
    assert first.exit_code == 0
    rows = [line.split() for line in first.stdout.splitlines()]
    assert [row[1] for row in rows[1:]] == [
        "n2@quay.example",
        "n2@harbor.example",
        "n1@quay.example",
        "n1@harbor.example",
    ]
    assert first.stderr == f"There are more: --after {rows[-1][0]}\n"
    assert addresses(place, "--after", rows[-1][0]) == ["n0@quay.example", "n0@harbor.example"]
    assert addresses(place, "--team", "Quay", "--origin", "manual") == [
        f"n{n}@quay.example" for n in (2, 1, 0)
    ]
    assert addresses(place, "--origin", "bounce") == []


# Why -----------------------------------------------------------------------------------------------


def test_a_bounce_is_explained(harbor: Installation) -> None:
    """The event, the server's words, and the mail."""
    done = harbor.run("suppressions", "explain", "Gone@quay.example")
    assert done.exit_code == 0, done.stderr
    for part in (
        "gone@quay.example is on the suppression list of Harbor.",
        "Cause:        a bounce",
        "Event:        bounced (Permanent, NoEmail) at ",
        "Answer:       550 5.1.1 no such user",
        f"Mail:         {harbor.email('mixed')}",
        "From:         Harbor <notes@harbor.example>",
        "To:           gone@quay.example",
        "Subject:      mixed",
        "suppressions remove gone@quay.example --team ",
    ):
        assert part in done.stdout, done.stdout
    told = harbor.json("suppressions", "explain", GONE)
    assert told["suppressed"] is True
    [one] = told["data"]
    assert (one["origin"], one["source_id"], one["mail"]["subject"]) == ("bounce", one["mail"]["id"], "mixed")
    assert one["event"]["detail"]["reply"] == "550 5.1.1 no such user"


def test_a_complaint_is_explained(harbor: Installation) -> None:
    [team] = [row["id"] for row in harbor.sql("SELECT id FROM teams WHERE name = 'Harbor'")]
    harbor.sql(
        """
        INSERT INTO suppressions (team_id, id, address, origin, source_id, created_at)
        SELECT team_id, gen_random_uuid(), 'complained@pillarbox.test', 'complaint', id, now()
          FROM emails WHERE team_id = $1 AND subject = 'simulated'
        """,
        team,
    )
    done = harbor.run("suppressions", "explain", "complained@pillarbox.test")
    assert "Cause:        a complaint: the recipient reported a mail." in done.stdout
    assert "Event:        complained at " in done.stdout
    assert "Subject:      simulated" in done.stdout


def test_what_is_not_suppressed_and_what_has_no_mail(harbor: Installation) -> None:
    done = harbor.run("suppressions", "explain", "ada@quay.example")
    assert (done.exit_code, done.stdout) == (
        0,
        "ada@quay.example is not suppressed: it is not on any team's suppression list.\n",
    )
    assert harbor.json("suppressions", "explain", "ada@quay.example")["suppressed"] is False
    done = harbor.run("suppressions", "explain", GONE, "--team", "Lighthouse")
    assert done.stdout.endswith("it is not on the suppression list of Lighthouse.\n")
    harbor.run("suppressions", "add", "by@hand.example", "--team", "Harbor")
    assert (
        "Cause:        put there by hand" in harbor.run("suppressions", "explain", "by@hand.example").stdout
    )
    harbor.sql("DELETE FROM timeline")
    harbor.sql("DELETE FROM emails")
    done = harbor.run("suppressions", "explain", GONE)
    assert "removed since: emails are kept for a limited time." in done.stdout
    assert "Event:" not in done.stdout


def test_an_address_cannot_speak_for_the_operator(one_team: Installation) -> None:
    """Whoever signs up with such an address must not run what stands in it."""
    one_team.run("suppressions", "add", "`reboot`@quay.example")
    done = one_team.run("suppressions", "explain", "`reboot`@quay.example")
    assert "suppressions remove '`reboot`@quay.example' --team" in done.stdout


# Files ---------------------------------------------------------------------------------------------


def imported(place: Installation, folder: Path, text: str | bytes, *options: str) -> Any:
    file = folder / "people.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return place.run("suppressions", "import", str(file), *options)


def test_a_file_is_imported_and_every_refused_row_is_told(one_team: Installation, tmp_path: Path) -> None:
    one_team.run("suppressions", "add", "known@quay.example")
    text = (
        "\ufeffName;E-Mail;Origin\r\n"
        "Kim;Kim@Orchard.example;\r\n"
        'Lee;"lee@quay.example";bounce\r\n'
        "Bad;nobody;\r\n"
        "\r\n"
        "Twice;KIM@orchard.example;complaint\r\n"
        "Known;known@quay.example;bounce\r\n"
        "Odd;odd@quay.example;spam\r\n"
        "Short\r\n"
        "IDN;ann@bücher.example;Complaint\n"
    )
    done = imported(one_team, tmp_path, text)
    errors = tmp_path / "people.csv.errors.csv"
    first, second = done.stdout.splitlines()
    assert done.exit_code == 1
    assert first == (
        f"3 addresses added to the suppression list of Harbor, 2 on it already, 3 refused (see {errors})."
    )
    assert second.startswith("8 rows in ")
    found = {one["email"]: one["origin"] for one in one_team.json("suppressions", "list")["data"]}
    assert found == {
        "kim@orchard.example": "manual",
        "lee@quay.example": "bounce",
        "ann@bücher.example": "complaint",
        "known@quay.example": "manual",
    }
    rows = list(csv.DictReader(errors.open()))
    assert [(row["line"], row["email"]) for row in rows] == [
        ("4", "nobody"),
        ("8", "odd@quay.example"),
        ("9", ""),
    ]
    assert all(row["reason"].endswith(".") for row in rows)
    assert one_team.json("verify")["ok"] is True
    done = imported(one_team, tmp_path, text.replace("Bad;nobody;\r\n", ""), "--origin", "complaint")
    assert done.stdout.startswith(
        "1 address added to the suppression list of Harbor, 5 on it already, 1 refused"
    )


def test_an_import_tells_webhooks_of_each_new_address(one_team: Installation, tmp_path: Path) -> None:
    one_team.sql(
        """
        INSERT INTO webhooks (team_id, id, created_at, endpoint, events, secrets, secret_ends)
        SELECT id, gen_random_uuid(), now(), 'https://h.example', '{suppression.added}', '{x}', '{NULL}'
          FROM teams
        """
    )
    imported(one_team, tmp_path, "a@quay.example\nb@quay.example\na@quay.example\n")
    assert len(one_team.sql("SELECT FROM webhook_deliveries WHERE kind = 'suppression.added'")) == 2


def test_a_list_goes_out_and_comes_in_as_it_was(one_team: Installation, tmp_path: Path) -> None:
    """More than a block, in any order; the names of columns are those that an import reads."""
    count = 2 * BLOCK + 7
    one_team.sql(
        """
        INSERT INTO suppressions (team_id, id, address, email, origin, created_at)
        SELECT t.id, gen_random_uuid(), 'n' || n || '@quay.example', NULL,
               CASE WHEN n % 7 = 0 THEN 'bounce' ELSE 'manual' END, now()
          FROM teams t, generate_series(1, $1::integer) n
        """,
        count,
    )
    file = tmp_path / "list.csv"
    done = one_team.run("suppressions", "export", str(file))
    assert (done.exit_code, done.stdout[: len(f"{file}: {count:,} rows in ")]) == (
        0,
        f"{file}: {count:,} rows in ",
    )
    rows = list(csv.DictReader(file.open()))
    assert list(rows[0]) == ["email", "origin", "source_id", "created_at", "id"]
    assert len({row["email"] for row in rows}) == count
    assert not Path(f"{file}.part").exists()
    only = one_team.run("suppressions", "export", "-", "--origin", "bounce")
    assert len(only.stdout.splitlines()) == 1 + sum(row["origin"] == "bounce" for row in rows)
    one_team.sql("DELETE FROM suppressions")
    done = one_team.run("suppressions", "import", str(file))
    assert done.stdout.startswith(
        f"{count:,} addresses added to the suppression list of Harbor, 0 on it already, 0 refused."
    )
    found = one_team.sql("SELECT address, origin FROM suppressions")
    assert {(row["address"], row["origin"]) for row in found} == {
        (row["email"], row["origin"]) for row in rows
    }


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            b"name,phone\nKim,1\n",
            "The first row has no column `email` and no address; --column names the column.",
        ),
        (b"\xff\xfee\x00m\x00a\x00i\x00l\x00\n\x00", "The file is in UTF-16; save it in UTF-8."),
        (b"PK\x03\x04rest", "The file is packed, or a workbook; save it as CSV."),
        (b"\x1f\x8b\x08rest", "The file is packed, or a workbook; save it as CSV."),
    ],
)
def test_files_that_cannot_be_read(one_team: Installation, tmp_path: Path, data: bytes, reason: str) -> None:
    done = imported(one_team, tmp_path, data)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"pillarbox: {reason}\n")
    assert addresses(one_team) == []
    assert not (tmp_path / "people.csv.errors.csv").exists()


def test_files_that_are_not_there(one_team: Installation, tmp_path: Path) -> None:
    done = one_team.run("suppressions", "import", str(tmp_path / "none.csv"))
    assert (done.exit_code, done.stderr) == (
        1,
        f"pillarbox: {tmp_path}/none.csv cannot be used: No such file or directory.\n",
    )
    done = one_team.run("suppressions", "export", str(tmp_path / "none" / "list.csv"))
    assert done.exit_code == 1
    assert "cannot be written: No such file or directory." in done.stderr
    done = imported(one_team, tmp_path, "a,b\nx,c@d.example\n", "--column", "C")
    assert done.stderr == "pillarbox: The first row has no column 'C'.\n"


def read(data: bytes, column: str | None = None) -> list[AddressRow | RefusedRow]:
    return list(CsvRows(io.BytesIO(data), column, None))


def test_a_bad_line_costs_itself_alone() -> None:
    """Bytes that are no text, NUL, lines without end and a quote that is never closed."""
    long = b"x" * (5 * LONGEST_LINE)
    lines = [
        b"email",
        b"a@q.example",
        b"\xff@q.example",
        b"n\0@q.example",
        long,
        b"b@q.example",
        b"c@q.example",
        b"",
    ]
    rows = read(b"\n".join(lines))
    assert [row.address for row in rows if isinstance(row, AddressRow)] == [
        "a@q.example",
        "b@q.example",
        "c@q.example",
    ]
    refused = [(row.line, row.reason) for row in rows if isinstance(row, RefusedRow)]
    assert refused == [
        (3, "The line is not text in UTF-8."),
        (4, "The line has a NUL."),
        (5, f"The line is longer than {LONGEST_LINE:,} octets."),
    ]
    open_quote = b'email\na@q.example\n"b@q.example\n' + b"x@q.example\n" * 20_000 + b"last@q.example\n"
    rows = read(open_quote)
    assert isinstance(rows[1], RefusedRow) or any(isinstance(row, RefusedRow) for row in rows)
    assert [row.address for row in rows if isinstance(row, AddressRow)][-1] == "last@q.example"


def test_a_file_without_end_is_given_up() -> None:
    with Path("/dev/zero").open("rb") as endless, pytest.raises(NotReadable, match="Line 1 does not end"):
        list(CsvRows(endless, None, None))


def test_columns_of_other_programs() -> None:
    for data in (
        b"Email Address,Status\nkim@quay.example,x\n",
        b"id\tRecipient\n1\tkim@quay.example\n",
        b'"E-Mail"\n"Kim@quay.example"\n',
        b"kim@quay.example\n",
        b"\xef\xbb\xbfkim@quay.example;x\n",
    ):
        [row] = read(data)
        assert isinstance(row, AddressRow), data
        assert row.address == "kim@quay.example"
    [row] = read(b"Email,Other\na@b.example,kim@quay.example\n", "other")
    assert isinstance(row, AddressRow)
    assert row.address == "kim@quay.example"
    assert read(b"") == []
    assert len(read(b"\n\n,\nemail\nkim@quay.example\n")) == 1
    with pytest.raises(NotReadable):
        read(b"\n\nkim\n")


def test_a_terminal_sees_how_far_it_is(one_team: Installation, tmp_path: Path) -> None:
    file = tmp_path / "many.csv"
    file.write_text("email\n" + "".join(f"n{n}@quay.example\n" for n in range(10 * BLOCK)))
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "pillarbox", "suppressions", "import", str(file)]
    place = ["--data", str(one_team.folder), "--database-url", one_team.url]
    done = subprocess.run(
        [*command, *place],
        stdout=subprocess.PIPE,
        stderr=slave,
        timeout=100,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(slave)
    shown = os.read(master, 1 << 20).decode()
    os.close(master)
    assert done.returncode == 0, shown
    assert "Importing" in shown
    assert "rows" in shown
    assert f"{10 * BLOCK:,} addresses added" in done.stdout.decode()
