"""`pillarbox metrics` on a small installation."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from cli.conftest import Installation


def test_the_last_days_are_a_table_with_a_total(harbor: Installation) -> None:
    done = harbor.run("metrics", "--team", "Harbor", "--timezone", "Asia/Kathmandu")
    assert done.exit_code == 0, done.output
    head, *rows = done.stdout.splitlines()
    assert head.split()[:3] == ["Day", "Accepted", "Sent"]
    assert rows[-1].split()[0] == "Total"
    assert len(rows) == 8
    found = harbor.json("metrics", "--team", "Harbor")
    assert found["team"] == "Harbor"
    assert sum(row["received"] for row in found["data"]) == found["totals"]["received"]


def test_the_days_are_those_of_the_zone(harbor: Installation) -> None:
    """Seven whole days of the calendar there, today the last one."""
    for name in ("Pacific/Kiritimati", "Etc/GMT+12", "America/New_York"):
        before = datetime.now(ZoneInfo(name)).date()
        found = harbor.json("metrics", "--team", "Harbor", "--timezone", name)
        days = [date.fromisoformat(row["period"]) for row in found["data"]]
        assert days == [days[-1] - timedelta(days=back) for back in reversed(range(7))]
        assert days[-1] in (before, datetime.now(ZoneInfo(name)).date())


def test_a_zone_that_is_none_is_one_sentence(harbor: Installation) -> None:
    done = harbor.run("metrics", "--team", "Harbor", "--timezone", "Mars")
    assert done.exit_code == 1
    assert "`Mars` is not an IANA time zone name." in done.stderr


def test_differences_are_shown_and_set_right(harbor: Installation) -> None:
    done = harbor.run("metrics", "rebuild")
    assert (done.exit_code, done.stdout) == (0, "The rollups say what the history says.\n")
    harbor.sql("UPDATE metric_increments SET received = received + 2 WHERE received > 0")
    shown = harbor.json("metrics", "rebuild", "--dry-run", status=1)
    assert {(lack["metric"], lack["was"] - lack["is"] > 0) for lack in shown["differences"]} == {
        ("received", True)
    }
    total = len(shown["differences"])
    some = harbor.json("metrics", "rebuild", "--dry-run", "--limit", "1", status=1)
    assert (some["total"], len(some["differences"])) == (total, 1)
    done = harbor.run("metrics", "rebuild", "--limit", "1")
    assert done.exit_code == 0
    _, _, said = done.stdout.splitlines()
    assert said == f"{total} differences, set right; the first 1 is listed."
    harbor.sql("UPDATE metric_increments SET received = received + 2 WHERE received > 0")
    done = harbor.run("metrics", "rebuild")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].endswith(", set right.")
    assert harbor.json("metrics", "rebuild", "--dry-run")["differences"] == []
