"""`pillarbox serve` as a process of its own, and the official Python SDK set to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import resend

from kit.prepared_cluster import put_database
from repository.running import TESTS, TIMEOUT, Lines

KEY = "re_SdkTest1_abcdefghijklmnopqrstuvwx"


@dataclass
class Server:
    """`pillarbox serve` as a process of its own."""

    process: subprocess.Popen[str]
    out: Lines
    log: Lines
    url: str

    def stopped(self) -> int:
        """Return the exit status after a SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT)


@contextmanager
def serving(data: Path, **flags: str) -> Iterator[Server]:
    """Yield a server that is ended with the block, however the block ends."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PILLARBOX_")}
    environment["PYTHONPATH"] = str(TESTS.parent / "src")
    given = {"data": str(data), "http": "127.0.0.1:0", "processes": "2", "rate_limit": "0", "log": "json"}
    given |= {"smtp": "off", "submission": "off"}
    given |= {"initial_api_key": KEY, **flags}
    if "database_url" not in given:
        put_database(data)
    options = [text for name, value in given.items() for text in (f"--{name.replace('_', '-')}", value)]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pillarbox", "serve", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    out, log = Lines(process.stdout), Lines(process.stderr)
    try:
        try:
            listeners = dict(part.split("=", 1) for part in out.wait_for("ready ").split()[1:])
        except AssertionError:
            raise AssertionError("\n".join(log.all)) from None
        yield Server(process, out, log, f"http://{listeners['http']}")
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def sdk_at(url: str) -> Iterator[None]:
    """Set the SDK to a server, as its environment variables would do it."""
    before = resend.api_url, resend.api_key
    resend.api_url, resend.api_key = url, KEY
    try:
        yield
    finally:
        resend.api_url, resend.api_key = before


def params(**fields: Any) -> Any:
    """Return what a program gives to `Emails.send`."""
    mail = {
        "from": "Harbor <notes@harbor.example>",
        "to": ["ada@quay.example"],
        "subject": "Berth 12",
        "html": "<p>Ready</p>",
    }
    return {**mail, **{name.rstrip("_"): value for name, value in fields.items()}}
