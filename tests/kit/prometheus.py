"""A Prometheus that asks a server of a test (Debian package prometheus, which has promtool too).

with prometheus("127.0.0.1:9100") as found:      # skips where it is not installed, and says so
    found.values("up")                           # the numbers of its answer, without NaN
"""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.monitoring import ALERTS, JOB

PATIENCE = 60.0
POLL = 0.2


def program(name: str) -> str:
    """Return the path of `prometheus` or `promtool`; skip the test where there is none."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian package prometheus)")
    return found


def promtool(*arguments: str) -> str:
    """Return what promtool says; it must not complain."""
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Prometheus:
    """A running Prometheus."""

    def __init__(self, at: str) -> None:
        self.at = at

    def ask(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self.at}{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def values(self, expression: str) -> list[float]:
        """Return the numbers that an expression has now."""
        result = self.ask("/api/v1/query", query=expression)["result"]
        numbers = [float(series["value"][1]) for series in result]
        return [number for number in numbers if not math.isnan(number)]

    def rules(self) -> list[dict[str, Any]]:
        groups = self.ask("/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]


@contextmanager
def prometheus(target: str) -> Iterator[Prometheus]:
    """Yield a Prometheus with our alerts that asks this address once a second."""
    path = program("prometheus")
    folder = Path(tempfile.mkdtemp(prefix="pillarbox-prometheus-"))
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    at = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [
            path,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={at}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=(folder / "log").open("wb"),
    )
    found = Prometheus(at)
    try:
        until(lambda: is_ready(found, process), lambda: (folder / "log").read_text())
        yield found
    finally:
        process.terminate()
        process.wait(PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


def is_ready(found: Prometheus, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "Prometheus ended"
    try:
        with urllib.request.urlopen(f"http://{found.at}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def until(holds: Any, otherwise: Any = lambda: "") -> None:
    """Return when `holds()` is true; `otherwise()` is said where it never is."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(POLL)


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port
