"""`pillarbox teams set` and `show`, and `pillarbox maintenance`."""

from __future__ import annotations

import pytest

from cli.conftest import Installation

LIMITS = ("rate_limit", "daily_quota", "monthly_quota")
DAYS = ("email_retention_days", "log_retention_days", "metrics_retention_days")
DOMAINS = ["teams", "set", "Harbor", "--most-domains"]


def made_team(place: Installation) -> None:
    place.json("teams", "create", "Harbor", "--email", "ada@harbor.example")


def test_limits_are_set_one_by_one_and_taken_away(empty: Installation) -> None:
    made_team(empty)
    assert {empty.json("teams", "show", "Harbor")[name] for name in (*LIMITS, *DAYS)} == {None}
    done = empty.run("teams", "set", "Harbor", "--daily-quota", "100", "--rate-limit", "0")
    assert done.stdout.splitlines() == ["Harbor: requests/s 0", "Harbor: emails a day 100"]
    days = [text for name in DAYS for text in (f"--{name.replace('_', '-')}", "7")]
    assert empty.run("teams", "set", "Harbor", "--monthly-quota", "2000", *days).exit_code == 0
    shown = empty.json("teams", "show", "Harbor")
    assert [shown[name] for name in (*LIMITS, *DAYS)] == [0, 100, 2000, 7, 7, 7]
    assert (shown["used_today"], shown["used_this_month"]) == (0, 0)
    done = empty.run(
        "teams", "set", "Harbor", "--daily-quota", "none", "--rate-limit", "default", DAYS_FLAG, "default"
    )
    assert done.stdout.splitlines() == [
        "Harbor: requests/s 10 (default)",
        "Harbor: emails a day none",
        "Harbor: days logs are kept 30 (default)",
    ]
    shown = empty.json("teams", "show", "Harbor")
    assert [shown[name] for name in (*LIMITS, *DAYS)] == [None, None, 2000, 7, None, 7]


DAYS_FLAG = "--log-retention-days"


def test_a_team_may_have_a_number_of_domains(empty: Installation) -> None:
    made_team(empty)
    assert empty.run(*DOMAINS, "5").stdout == "Harbor: domains 5\n"
    assert empty.json("teams", "show", "Harbor")["most_domains"] == 5
    assert empty.run(*DOMAINS, "default").stdout == "Harbor: domains none (default)\n"
    assert empty.json("teams", "show", "Harbor")["most_domains"] is None


def test_a_team_may_have_a_number_of_webhooks_and_keys(empty: Installation) -> None:
    made_team(empty)
    assert empty.run("teams", "set", "Harbor", "--most-webhooks", "7").stdout == "Harbor: webhooks 7\n"
    assert empty.run("teams", "set", "Harbor", "--most-api-keys", "3").stdout == "Harbor: api keys 3\n"
    shown = empty.json("teams", "show", "Harbor")
    assert (shown["most_webhooks"], shown["most_api_keys"]) == (7, 3)
    back = empty.run("teams", "set", "Harbor", "--most-webhooks", "default").stdout
    assert back == "Harbor: webhooks 50 (default)\n"


def test_show_is_for_people_too(empty: Installation) -> None:
    made_team(empty)
    empty.run("teams", "set", "Harbor", "--monthly-quota", "2000")
    lines = [line.split(maxsplit=3) for line in empty.run("teams", "show", "Harbor").stdout.splitlines()]
    assert ["Emails", "a", "month", "2000"] in lines
    assert any(line[:2] == ["Requests/s", "10"] for line in lines)


@pytest.mark.parametrize(
    ("flag", "text", "said"),
    [
        ("--daily-quota", "-1", "--daily-quota is a number from 0 to 1000000000000000, or 'none', not '-1'."),
        ("--rate-limit", "none", "--rate-limit is a number from 0 to 1000000, or 'default', not 'none'."),
        (DAYS_FLAG, "1d", "--log-retention-days is a number from 0 to 36500, or 'default', not '1d'."),
    ],
)
def test_what_is_no_limit_changes_nothing(empty: Installation, flag: str, text: str, said: str) -> None:
    made_team(empty)
    done = empty.run("teams", "set", "Harbor", "--monthly-quota", "5", f"{flag}={text}")
    assert (done.exit_code, done.stderr) == (1, f"pillarbox: {said}\n")
    assert empty.json("teams", "show", "Harbor")["monthly_quota"] is None


def test_a_team_and_a_limit_must_be_named(empty: Installation) -> None:
    made_team(empty)
    assert "Nothing to set" in empty.run("teams", "set", "Harbor").stderr
    assert "There is no team 'Quay'" in empty.run("teams", "set", "Quay", "--daily-quota", "1").stderr
    assert "There is no team 'Quay'" in empty.run("teams", "show", "Quay").stderr


def test_maintenance_is_switched_on_and_off(empty: Installation) -> None:
    assert (empty.run("maintenance", "status").exit_code, empty.sql("SELECT * FROM maintenance")) == (0, [])
    assert empty.run("maintenance", "on", "--retry-after", "300").exit_code == 0
    assert empty.run("maintenance", "on", "--retry-after", "400").exit_code == 0
    assert [row["retry_after"] for row in empty.sql("SELECT retry_after FROM maintenance")] == [400]
    status = empty.run("maintenance", "status")
    assert (status.exit_code, status.stdout) == (1, "Maintenance is on (400 s).\n")
    assert empty.run("maintenance", "on", "--retry-after", "0").exit_code == 2
    for _ in range(2):
        assert empty.run("maintenance", "off").stdout == "Maintenance is off.\n"
    assert empty.run("maintenance", "status").exit_code == 0
