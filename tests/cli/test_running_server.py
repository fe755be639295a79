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
