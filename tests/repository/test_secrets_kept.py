"""Secrets of the environment are in no file, no log line, no argument and no other process's environment."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kit.process import KEY, environment
from pillarbox.kernel.process.secrets_channel import SOCKET_FILE, SilentError, ask
from pillarbox.kernel.storage.data_folder import RUN_FOLDER
from repository.running import Lines, children_of

RING = base64.b64encode(bytes(range(32))).decode()
PASSWORD = "Anchor-9-Harbor"
SECRETS = (RING.encode(), PASSWORD.encode(), KEY.encode())
COMMANDS = (["doctor"], ["domains", "list"])


def variables(data: Path) -> dict[str, str]:
    return environment() | {
        "PILLARBOX_DATA": str(data),
        "PILLARBOX_HTTP": "127.0.0.1:0",
        "PILLARBOX_SMTP": "off",
        "PILLARBOX_SUBMISSION": "off",
        "PILLARBOX_PROCESSES": "1",
        "PILLARBOX_LOG": "json",
        "PILLARBOX_REQUIRE_VERIFIED_DOMAIN": "never",
        "PILLARBOX_SECRET_KEY": f"k1:{RING}",
        "PILLARBOX_ROUTE": f"relay:smtp://harbor:{PASSWORD}@127.0.0.1:1",
        "PILLARBOX_INITIAL_API_KEY": KEY,
    }


def test_secrets_of_the_environment_are_written_nowhere(tmp_path: Path) -> None:
    """SEC-05."""
    data = tmp_path / "data"
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "serve"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables(data),
    )
    out, log = Lines(process.stdout), Lines(process.stderr)
    try:
        http_server = dict(part.split("=") for part in out.wait_for("ready").split()[1:])["http"]
        assert PASSWORD in ask(data)["settings"]["route"], "commands are told"
        send(http_server)
        said = [command(data, words) for words in COMMANDS]
        assert found_in(files(data)) == []
        for pid in descendants(process.pid):
            assert found_in({f"{pid}": Path(f"/proc/{pid}/cmdline").read_bytes()}) == []
            assert found_in({f"{pid}": Path(f"/proc/{pid}/environ").read_bytes()}) == []
        assert found_in({"ps": Path(f"/proc/{process.pid}/cmdline").read_bytes()}) == []
        assert found_in({" ".join(words): text for words, text in zip(COMMANDS, said, strict=True)}) == []
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    spoken = "\n".join(out.wait_for_end() + log.wait_for_end()).encode()
    assert found_in({"output": spoken}) == []
    assert found_in(files(data)) == [], "after kill -9 too"
    with pytest.raises(SilentError):
        ask(data)


def test_a_socket_of_a_killed_server_is_replaced(tmp_path: Path) -> None:
    """And the path of the data folder may be longer than that of a socket (unix(7))."""
    data = tmp_path / ("long" * 30)
    (data / RUN_FOLDER).mkdir(parents=True)
    (data / RUN_FOLDER / SOCKET_FILE).touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "serve"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=variables(data) | {"PILLARBOX_ROLES": "api"},
    )
    try:
        Lines(process.stdout).wait_for("ready")
        assert ask(data)["settings"]["secret_key"] == f"k1:{RING}"
        assert (data / RUN_FOLDER / SOCKET_FILE).stat().st_mode & 0o777 == 0o600
    finally:
        process.terminate()
        process.wait()
    assert not (data / RUN_FOLDER / SOCKET_FILE).exists()


def send(http_server: str) -> None:
    """A mail that the relay will never take, so that its failure is recorded too."""
    body = {"from": "a@harbor.example", "to": "b@quay.example", "subject": "x", "text": "x"}
    request = urllib.request.Request(
        f"http://{http_server}/emails",
        json.dumps(body).encode(),
        {"authorization": f"Bearer {KEY}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200


def command(data: Path, words: list[str]) -> bytes:
    """What a command says, knowing no more than where the folder is."""
    done = subprocess.run(
        [sys.executable, "-m", "pillarbox", *words, "--data", str(data)],
        capture_output=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def descendants(pid: int) -> Iterator[int]:
    for child in children_of(pid):
        yield child
        yield from descendants(child)


def files(folder: Path) -> dict[str, bytes]:
    """Every file below, as it is now."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                try:
                    found[str(path)] = path.read_bytes()
                except FileNotFoundError:
                    continue  # the database removes files as it works
    return found


def found_in(texts: Mapping[str, bytes]) -> list[str]:
    """Where one of the secrets stands."""
    return [name for name, text in texts.items() if any(secret in text for secret in SECRETS)]
