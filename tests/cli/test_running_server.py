"""The commands beside a running `pillarbox serve`, and after it has stopped: the same rows either way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from kit.http_client import NO_CERTIFICATES
from repository.running import TESTS, TIMEOUT, Lines


def environment(**more: str) -> dict[str, str]:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PILLARBOX_")}
    return {**clean, "PYTHONPATH": str(TESTS.parent / "src"), **more}


@contextmanager
def serving(data: Path) -> Iterator[Lines]:
    """A whole server with its embedded database; what it says on standard output."""
    command = [sys.executable, "-P", "-m", "pillarbox", "serve", "--data", str(data)]
    listeners = ["--http", "127.0.0.1:0", "--smtp", "off", "--submission", "off", "--processes", "1"]
    process = subprocess.Popen(
        [*command, *listeners],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
    )
    try:
        lines = Lines(process.stdout)
        lines.wait_for("ready ")
        yield lines
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0


def command(data: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pillarbox", *arguments, "--data", str(data)],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_commands_find_the_database_of_a_running_server_and_of_a_stopped_one(tmp_path: Path) -> None:
    with serving(tmp_path) as lines:
        key = lines.wait_for("api key ").split()[2]
        story = json.loads(command(tmp_path, "send", "--json", RESEND_API_KEY=key))
        assert story["recipients"] == {"delivered@pillarbox.test": "delivered"}
        beside = json.loads(command(tmp_path, "emails", "show", story["id"], "--json"))
        assert [event["event"] for event in beside["events"]] == ["queued", "sent", "delivered"]
        assert json.loads(command(tmp_path, "verify", "--json"))["ok"] is True
    after = json.loads(command(tmp_path, "emails", "show", story["id"], "--json"))
    assert after == beside


def test_the_first_start_prints_a_link_by_which_its_owner_makes_an_account(tmp_path: Path) -> None:
    """Once: a later start prints none, and the link works one time."""
    with serving(tmp_path) as lines:
        link = lines.wait_for("set-up ").split()[1]
        lines.wait_for("ready ")
        with httpx.Client(headers={"sec-fetch-site": "same-origin"}, verify=NO_CERTIFICATES) as browser:
            page = browser.get(link)
            token = page.text.partition('name="csrf_token" value="')[2].partition('"')[0]
            cookie = page.headers["set-cookie"].partition(";")[0]
            form = {"csrf_token": token, "email": "ada@quay.example", "password": "seven tall ships at noon"}
            made = browser.post(link, data=form, headers={"cookie": cookie})
            assert (made.status_code, made.headers["location"]) == (303, "/dashboard")
            assert browser.get(link).status_code == 404
        [person] = json.loads(command(tmp_path, "people", "list", "--json"))["data"]
        assert (person["email"], person["teams"][0]["role"]) == ("ada@quay.example", "owner")
    with serving(tmp_path) as lines:
        lines.wait_for("ready ")
        assert not [line for line in lines.all if line.startswith("set-up ")]


def test_a_folder_without_a_database_is_refused_and_not_made(tmp_path: Path) -> None:
    """A misspelt folder must not be answered with "No gaps in 0 emails"."""
    wrong = tmp_path / "misspelt"
    for status, *arguments in ((2, "verify"), (1, "queue"), (1, "teams", "list")):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pillarbox", *map(str, arguments), "--data", str(wrong)],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == status, arguments
        assert f"There is no database in the data folder {wrong}" in done.stderr, arguments
        assert not wrong.exists()
