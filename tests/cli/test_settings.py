"""`pillarbox settings`: every setting with where it came from, and no secret."""

from __future__ import annotations

from cli.conftest import Installation
from pillarbox.app import SETTINGS
from pillarbox.kernel.settings.settings import read_settings, settings_of
from pillarbox.kernel.settings.shown_settings import AT_START, DEFAULT, HIDDEN, shown_settings


def test_each_setting_is_shown_once_with_its_origin() -> None:
    given = read_settings(
        SETTINGS,
        {"data": "/srv/pillarbox", "route": "relay:smtp://ann:geheim@relay.example:587"},
        {"PILLARBOX_HOSTNAME": "mx.harbor.example"},
    )
    shown = {row.flag: row for row in shown_settings(given.replacing(rate_limit="7"), ())}
    assert (shown["--data"].value, shown["--data"].origin) == ("/srv/pillarbox", "--data")
    assert shown["--hostname"].origin == "PILLARBOX_HOSTNAME"
    assert (shown["--route"].value, shown["--route"].origin) == (HIDDEN, "--route")
    assert shown["--rate-limit"].origin == AT_START
    assert shown["--processes"].origin == DEFAULT


def test_what_a_worker_is_given_keeps_its_origin() -> None:
    given = read_settings(SETTINGS, {"hostname": "mx.harbor.example"}, {})
    worker = settings_of(given.given, sources=given.sources)
    assert worker.sources == {"hostname": "--hostname"}


def test_the_command_lists_them(harbor: Installation) -> None:
    listed = harbor.json("settings")["data"]
    assert {row["flag"] for row in listed} == {setting.flag for setting in SETTINGS}
    changed = harbor.json("settings", "--changed")["data"]
    assert {row["flag"] for row in changed} >= {"--data", "--database-url"}
    [url] = [row for row in changed if row["flag"] == "--database-url"]
    assert (url["value"], harbor.url in harbor.run("settings").stdout) == (HIDDEN, False)
