"""What a person reads who starts Pillarbox on a terminal, and what a service logs."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kit.process import Lines, environment
from repository.running import TIMEOUT, heed_signals, supervisor

COLUMNS = 80
FLAGS = ("--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0", "--submission", "127.0.0.1:0", "--processes", "1")
PERIODIC = "jobs.periodic"


class OnTerminal:
    """A `pillarbox serve` on a terminal of its own, 80 columns wide."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pillarbox", "serve", *FLAGS, *flags],
            cwd=folder,
            env={**environment(""), "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: controlled_by(0),
        )
        os.close(theirs)
        self.screen = Lines(until_closed(self.ours))

    def press_ctrl_c(self) -> None:
        os.write(self.ours, b"\x03")


def controlled_by(descriptor: int) -> None:
    """The terminal of that descriptor is this process's: Ctrl-C on it is a signal to it."""
    heed_signals()
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)


def until_closed(descriptor: int) -> Iterator[str]:
    """The lines of a terminal; its end is an error when nobody holds the other side."""
    rest = b""
    while True:
        try:
            data = os.read(descriptor, 4096)
        except OSError:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from (line.decode().rstrip("\r") for line in lines)


@contextmanager
def on_terminal(folder: Path, *flags: str) -> Iterator[OnTerminal]:
    running = OnTerminal(folder, *flags)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.terminate()
            running.process.wait(TIMEOUT)
        os.close(running.ours)


def test_the_first_start_says_in_ten_lines_what_a_person_needs(tmp_path: Path) -> None:
    with on_terminal(tmp_path) as running:
        running.screen.wait_for("RESEND_API_KEY=")
        said = list(running.screen.all)
        running.press_ctrl_c()
        assert running.process.wait(TIMEOUT) == 0
        after = running.screen.all[len(said) :]
    assert len(said) == 10
    names = [line.split()[0] for line in said]
    expected = ["Making", "API", "API", "SMTP", "Submission", "Set", "Captured", "Ready.", "Send"]
    assert names[:9] == expected
    assert str(tmp_path) in said[0]
    (key,) = re.findall(r"^API key    (re_\S+)  \(shown only now\)$", said[1])
    assert re.fullmatch(r"Set up     http://127\.0\.0\.1:\d+/set-up/[\w-]{32}", said[5])
    assert said[9].startswith(f"  RESEND_API_KEY={key} ")
    assert said[9].endswith("script/pillarbox send")
    too_wide = [line for line in said if len(line) > COLUMNS and str(tmp_path) not in line]
    assert too_wide in ([], [said[9]]), "only the path of the checkout may be longer than a line"
    stopping = "Stopping: what is on its way is finished first. Ctrl-C again stops at once."
    assert [line for line in after if line.strip("^C")] == [stopping]


def test_a_later_start_says_less_and_no_key(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "--data", "first") as running:
        running.screen.wait_for("RESEND_API_KEY=")
    with on_terminal(tmp_path, "--data", "first", "--route", "direct") as running:
        running.screen.wait_for("Ctrl-C stops it.")
        text = "\n".join(running.screen.all)
    assert "API key  " not in text
    assert "Captured" not in text
    assert "Ready. Mail is delivered to the servers of its recipients.\n" in text


def test_a_second_ctrl_c_stops_at_once_and_says_so(tmp_path: Path) -> None:
    with on_terminal(tmp_path) as running:
        running.screen.wait_for("RESEND_API_KEY=")
        os.kill(running.process.pid, signal.SIGSTOP)
        running.press_ctrl_c()
        os.kill(running.process.pid, signal.SIGTERM)
        os.kill(running.process.pid, signal.SIGCONT)
        status = running.process.wait(TIMEOUT)
        text = "\n".join(running.screen.wait_for_end())
    assert status in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    assert "Stopped at once; the next start goes on with what was committed." in text
    assert "Traceback" not in text


def test_ctrl_c_before_anything_runs_leaves_no_traceback(tmp_path: Path) -> None:
    """Wherever in its first moments it hits the program."""
    for pause in (0.02, 0.1, 0.3):
        with on_terminal(tmp_path) as running:
            try:
                running.process.wait(pause)
            except subprocess.TimeoutExpired:
                running.press_ctrl_c()
            running.process.wait(TIMEOUT)
            text = "\n".join(running.screen.wait_for_end())
        assert "/src/pillarbox/" not in text, "a traceback"


def test_a_service_logs_no_chatter_unless_it_is_asked_to(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data", "--log", "json") as running:
        running.ready()
        running.send(signal.SIGTERM)
        assert running.exit_status() == 0
        quiet = [json.loads(line) for line in running.log.wait_for_end()]
    assert [line["event"] for line in quiet if line["part"] != "small_app"] == [
        "supervisor.stopping",
        "supervisor.stopped",
    ]
    with supervisor(tmp_path / "data", "--log", "json", "--log-level", "debug") as running:
        running.ready()
        running.log.wait_for("worker.ready", count=2)
        running.log.wait_for("database system is ready to accept connections")


def test_a_line_of_the_log_does_not_run_into_a_progress_bar(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", TRANSFER],
        cwd=tmp_path,
        env={**environment(""), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    lines = list(until_closed(ours))
    assert process.wait(TIMEOUT) == 0
    # What a person sees of a line stands behind the last place where it was erased.
    seen = [re.sub(r"\x1b\[[0-9?;]*[a-zA-Z]", "", line.rpartition("\x1b[2K")[2]) for line in lines]
    [logged] = [line for line in seen if "imports.ended" in line]
    assert re.match(r"\d{4}-\d\d-\d\dT", logged)
    assert seen[-1] == "The result."
    os.close(ours)


TRANSFER = """
from pillarbox.kernel.observability import log
from pillarbox.kernel.terminal.answers import say
from pillarbox.kernel.terminal.progress import transfer

log.configure("text")
with transfer("Importing", 10) as shown:
    for number in range(10):
        shown.reach(number, number)
        shown._bar.refresh()
        if number == 5:
            log.get("imports").info("imports.ended")
say("The result.")
"""


def test_a_signal_ends_a_question(tmp_path: Path) -> None:
    """While it waits no event loop runs that would see it."""
    for press, status in ((b"\x03", 130), (b"\x1c", 131), (b"\x04", 1)):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", ASKING],
            cwd=tmp_path,
            env={**environment(""), "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: controlled_by(0),
        )
        os.close(theirs)
        seen = b""
        while b"[y/N]" not in seen:
            seen += os.read(ours, 4096)
        os.write(ours, press)
        assert process.wait(TIMEOUT) == status
        rest = "\n".join(until_closed(ours))
        assert "Traceback" not in rest
        assert "let go" in rest
        os.close(ours)


ASKING = """
import asyncio, sys, typer
from pillarbox.kernel.terminal.answers import CommandRefused, stopped
from pillarbox.kernel.terminal.connect import run_until_signal
from pillarbox.kernel.terminal.questions import confirm

async def work():
    try:
        confirm("Drop it?")
    finally:
        await asyncio.sleep(0)
        print("let go", flush=True)

try:
    sys.exit(run_until_signal(work()))
except CommandRefused:
    sys.exit(1)
"""
