"""A supervisor as a real process, watched through its output and its children."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kit.prepared_cluster import put_database

TESTS = Path(__file__).parents[1]
TIMEOUT = 30.0


def heed_signals() -> None:
    """A shell starts background jobs with these two ignored, and a test run may be one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


class Lines:
    """The lines of a stream, kept as they come; waiting for one is waiting for an event."""

    def __init__(self, stream: Any) -> None:
        self.all: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: Any) -> None:
        for line in stream:
            with self._changed:
                self.all.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, part: str, *, count: int = 1) -> str:
        """The line number `count` that holds `part`."""

        def found() -> list[str]:
            return [line for line in self.all if part in line]

        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(found()) >= count, TIMEOUT)
            assert len(found()) >= count, f"no line with {part!r} in:\n" + "\n".join(self.all)
            return found()[count - 1]

    def wait_for_end(self) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: self._ended, TIMEOUT)
            return self.all


class Running:
    """One supervisor."""

    def __init__(
        self,
        data: Path,
        factory: str,
        *flags: str,
        terminal: int | None = None,
        before: Callable[[], object] = heed_signals,
        finds_database: bool = True,
    ) -> None:
        environment = {name: text for name, text in os.environ.items() if not name.startswith("PILLARBOX_")}
        environment["PYTHONPATH"] = f"{TESTS}:{TESTS.parent / 'src'}"
        given = {"--data": str(data), "--http": "127.0.0.1:0", "--processes": "2", "--log": "json"}
        given |= {"--smtp": "off", "--submission": "off"}
        given.update(zip(flags[::2], flags[1::2], strict=True))
        self.data = data
        flat = [text for pair in given.items() for text in pair]
        if (
            finds_database
            and not {"--database-url", "--pg-bin"} & {*given}
            and os.access(data.parent, os.W_OK)
        ):
            put_database(data)
        self.process = subprocess.Popen(
            [sys.executable, str(TESTS / "repository" / "serve.py"), factory, *flat],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            stdin=terminal,
            start_new_session=terminal is not None,
            preexec_fn=before,
        )
        self.out = Lines(self.process.stdout)
        self.log = Lines(self.process.stderr)

    def ready(self) -> dict[str, str]:
        """The listeners of the ready line: address by name."""
        line = self.out.wait_for("ready")
        return dict(part.split("=") for part in line.split()[1:])

    def get(self, path: str = "/", *, listener: str = "http") -> str:
        with urllib.request.urlopen(f"http://{self.ready()[listener]}{path}", timeout=TIMEOUT) as reply:
            text: str = reply.read().decode()
            return text

    def note(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.data / "run" / "supervisor.json").read_text())
        return found

    def children(self) -> list[int]:
        return children_of(self.process.pid)

    def workers(self) -> list[int]:
        return [pid for pid in self.children() if b"pillarbox.worker" in command_of(pid)]

    def fork_server(self) -> int:
        (found,) = [pid for pid in self.children() if b"pillarbox.fork_server" in command_of(pid)]
        return found

    def postmaster(self) -> int:
        (found,) = [pid for pid in self.children() if b"bin/postgres" in command_of(pid)]
        return found

    def family(self) -> list[int]:
        """All processes below the supervisor."""
        found = self.children()
        for pid in found:
            found.extend(children_of(pid))
        return found

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def exit_status(self) -> int:
        return self.process.wait(TIMEOUT)


@contextmanager
def supervisor(
    data: Path, *flags: str, factory: str = "repository.small_app:build", **launch: Any
) -> Iterator[Running]:
    """A supervisor that is ended with the block, however the block ends."""
    running = Running(data, factory, *flags, **launch)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.terminate()
            try:
                running.process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                running.process.kill()
                running.process.wait()


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def children_of(pid: int) -> list[int]:
    """The processes whose parent is `pid` (the field after the command in /proc/PID/stat)."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                stat = Path(entry.path, "stat").read_text()
            except OSError:
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(entry.name))
    return found


class Watched:
    """Processes held by descriptors, so that a number used again cannot mislead."""

    def __init__(self, pids: list[int]) -> None:
        self._descriptors = [os.pidfd_open(pid) for pid in pids]

    def kill(self) -> None:
        """SIGKILL to those that have not ended."""
        for descriptor in self._descriptors:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)

    def all_ended(self) -> bool:
        """Whether each of them ended within the timeout of the test."""
        try:
            return all(select.select([fd], [], [], TIMEOUT)[0] for fd in self._descriptors)
        finally:
            for descriptor in self._descriptors:
                os.close(descriptor)
