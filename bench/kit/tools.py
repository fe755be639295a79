"""Programs of other houses that measurements use, free ports, and children that are ended by their pid."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PACKAGES = {
    "wrk": "wrk",
    "postfix": "postfix",
    "postconf": "postfix",
    "smtp-sink": "postfix",
    "smtp-source": "postfix",
    "opendkim": "opendkim",
}
"""Which Debian package has the program."""

PLACES = ("/usr/local/sbin", "/usr/sbin", "/sbin")
STOP_SECONDS = 60.0
_tried: set[str] = set()


class Missing(Exception):  # noqa: N818 (a state, reported as a sentence)
    """A program is not here and cannot be installed; the message says why."""


def find(program: str) -> str | None:
    """Where a program is: beside this Python, on the path, or in the folders of system programs."""
    beside = str(Path(sys.executable).parent)
    path = os.pathsep.join([beside, os.environ.get("PATH", os.defpath), *PLACES])
    return shutil.which(program, path=path)


def need(*programs: str) -> None:
    """Make sure that these programs are here, installing their Debian packages as root; else `Missing`."""
    for program in programs:
        if find(program) is None:
            install(program)
        if find(program) is None:
            package = PACKAGES.get(program, program)
            raise Missing(f"{program} is not on this machine (Debian package {package})")


def install(program: str) -> None:
    package = PACKAGES.get(program, program)
    if os.geteuid() != 0 or shutil.which("apt-get") is None or package in _tried:
        return
    _tried.add(package)
    calm = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", package]):
        subprocess.run(["apt-get", "-q", *command], env=calm, timeout=600, capture_output=True)


def program(name: str) -> str:
    """The path of a program that `need` has made sure of."""
    path = find(name)
    if path is None:
        raise Missing(f"{name} is not on this machine")
    return path


def free_port() -> int:
    """A port on loopback that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(port: int) -> bool:
    """Whether somebody listens on this port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(claim: Callable[[], bool], what: str, seconds: float = 30.0, pause: float = 0.02) -> None:
    """Return when the claim holds; raise TimeoutError that says what did not come."""
    deadline = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come in {seconds:.0f} s")
        time.sleep(pause)


@contextmanager
def child(command: Sequence[str], log: Path, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """A process for as long as the block runs; its output goes to `log`."""
    with log.open("wb") as output:
        process = subprocess.Popen(  # type: ignore[call-overload]
            list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, **options
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> float:
    """SIGTERM, and SIGKILL when that is not heeded; returns the seconds that it took."""
    began = time.monotonic()
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return time.monotonic() - began
