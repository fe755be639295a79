"""Signals besides the usual stop: none of them ends a process with something on the wire (OPS-03)."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import socket
import ssl
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from repository.running import TESTS, TIMEOUT, Lines, Running, Watched, heed_signals, supervisor

ALARMS = (signal.SIGALRM, signal.SIGPROF)
UNUSED = (
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGIO,
    signal.SIGPWR,
)
HELD_COMMAND = """
import asyncio, sys
import typer

folder = sys.argv.pop()
from pillarbox.app import MANIFESTS
from pillarbox.kernel.terminal.connect import run
from pillarbox.kernel.terminal.program import InstalledProgram, running

async def work(connected):
    print("working", flush=True)
    await asyncio.sleep(600)
    return 0

with running(InstalledProgram(MANIFESTS)):
    typer.run(lambda: run(work, data=folder, database_url=None))
"""


class SlowRequest:
    """A request that is under way until it is released."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._answers: list[str] = []
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()
        running.log.wait_for("slow.began")

    def _ask(self) -> None:
        self._answers.append(self._running.get("/slow"))

    def answer(self) -> str:
        """The answer, once the application may give it."""
        (self._running.data / "released").touch()
        self._thread.join(TIMEOUT)
        (found,) = self._answers
        return found


def hear_no_hang_up() -> None:
    """What nohup(1) does, and a terminal of its own."""
    heed_signals()
    own_terminal()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def with_terminal() -> None:
    heed_signals()
    own_terminal()


def own_terminal() -> None:
    """Standard input becomes the controlling terminal, as in a session of ssh."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def on_a_terminal(data: Path, before: Callable[[], object]) -> Iterator[tuple[Running, Callable[[], None]]]:
    """A supervisor that was started from a terminal, and what closes that."""
    near, far = pty.openpty()
    with supervisor(data, terminal=far, before=before) as running:
        os.close(far)
        running.ready()
        yield running, lambda: os.close(near)


def test_a_hang_up_ends_nothing_and_lets_the_workers_look_at_their_files(tmp_path: Path) -> None:
    """OPS-03."""
    with supervisor(tmp_path / "data") as running:
        running.ready()
        workers, postmaster = running.workers(), running.postmaster()
        slow = SlowRequest(running)
        running.send(signal.SIGHUP)
        running.log.wait_for("worker.reloaded", count=2)
        assert int(slow.answer()) in workers
        assert running.workers() == workers
        assert running.postmaster() == postmaster
        assert {path.name for path in (tmp_path / "data").glob("reloaded-*")} == {
            f"reloaded-{pid}" for pid in workers
        }
        running.send(signal.SIGTERM)
        assert running.exit_status() == 0


def test_a_hang_up_puts_a_renewed_certificate_to_use(tmp_path: Path) -> None:
    authority = trustme.CA()
    flags = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))

    def issue() -> bytes:
        made = authority.issue_cert("127.0.0.1")
        made.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
        made.private_key_pem.write_to_path(tmp_path / "key.pem")
        return ssl.PEM_cert_to_DER_cert(made.cert_chain_pems[0].bytes().decode())

    def shown() -> bytes | None:
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        host, _, port = running.ready()["http"].rpartition(":")
        with (
            socket.create_connection((host, int(port)), TIMEOUT) as plain,
            trusting.wrap_socket(plain, server_hostname=host) as secured,
        ):
            return secured.getpeercert(binary_form=True)

    first = issue()
    with supervisor(tmp_path / "data", "--processes", "1", *flags) as running:
        assert shown() == first
        second = issue()
        running.send(signal.SIGHUP)
        running.log.wait_for("worker.reloaded")
        assert shown() == second != first


@pytest.mark.slow
def test_a_hang_up_during_the_start_does_not_end_it(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data", "--log-level", "debug") as running:
        running.log.wait_for("starting PostgreSQL")
        running.send(signal.SIGHUP)
        running.log.wait_for("supervisor.reloading")
        running.ready()
        assert running.get()


def test_the_quit_key_drains(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data") as running:
        running.ready()
        slow = SlowRequest(running)
        running.send(signal.SIGQUIT)
        running.log.wait_for("supervisor.stopping")
        asked = slow.answer()
        assert running.exit_status() == 0
        assert (tmp_path / f"data/stopped-{asked}").exists()


@pytest.mark.slow
def test_signals_without_a_meaning_end_nothing(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data", "--processes", "1") as running:
        running.ready()
        (worker,) = running.workers()
        fork_server = running.fork_server()
        for number in UNUSED:
            running.send(number)
            os.kill(worker, number)
            os.kill(fork_server, number)
        for number in UNUSED:
            if number not in ALARMS:  # these are the watchdog's and leave no line
                running.log.wait_for(f'"signal":"{number.name}"', count=2)
        os.kill(fork_server, signal.SIGHUP)
        os.kill(worker, signal.SIGHUP)
        running.log.wait_for("worker.reloaded")
        # A new worker shows that the fork server lives, and that its own signals work.
        os.kill(worker, signal.SIGTERM)
        running.log.wait_for("worker.ready")
        assert running.fork_server() == fork_server
        assert not [line for line in running.log.all if "fork_server.died" in line]
        assert (tmp_path / f"data/stopped-{worker}").exists()


def test_a_worker_that_is_told_to_quit_drains(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data", "--processes", "1") as running:
        running.ready()
        (worker,) = running.workers()
        slow = SlowRequest(running)
        os.kill(worker, signal.SIGQUIT)
        assert int(slow.answer()) == worker
        running.log.wait_for("worker.ready")
        assert (tmp_path / f"data/stopped-{worker}").exists()


def test_a_terminal_that_is_closed_stops_the_server_in_order(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path / "data", with_terminal) as (running, close):
        family = Watched(running.family())
        slow = SlowRequest(running)
        close()
        running.log.wait_for("supervisor.stopping")
        asked = slow.answer()
        assert running.exit_status() == 0
        assert (tmp_path / f"data/stopped-{asked}").exists()
        assert family.all_ended()


def test_a_terminal_that_is_closed_after_a_stop_does_not_cut_it_short(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path / "data", with_terminal) as (running, close):
        slow = SlowRequest(running)
        running.send(signal.SIGTERM)
        running.log.wait_for("supervisor.stopping")
        close()
        asked = slow.answer()
        assert running.exit_status() == 0
        assert (tmp_path / f"data/stopped-{asked}").exists()


@pytest.mark.slow
def test_a_hang_up_by_hand_with_the_terminal_still_there_stops_nothing(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path / "data", with_terminal) as (running, close):
        running.send(signal.SIGHUP)
        running.log.wait_for("worker.reloaded", count=2)
        assert int(running.get()) in running.workers()
        close()
        assert running.exit_status() == 0


def test_under_nohup_the_server_outlives_its_terminal(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path / "data", hear_no_hang_up) as (running, close):
        close()
        assert int(running.get()) in running.workers()
        running.send(signal.SIGTERM)
        assert running.exit_status() == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT])
def test_a_command_that_started_the_database_stops_it_in_order(
    stopped_installation: Path, number: signal.Signals
) -> None:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PILLARBOX_")}
    with subprocess.Popen(
        [sys.executable, "-c", HELD_COMMAND, str(stopped_installation)],
        stdout=subprocess.PIPE,
        text=True,
        env={**environment, "PYTHONPATH": str(TESTS.parent / "src")},
        preexec_fn=heed_signals,
    ) as command:
        Lines(command.stdout).wait_for("working")
        command.send_signal(number)
        assert command.wait(TIMEOUT) == 128 + number
    # Both are removed by a stop in order alone.
    assert not (stopped_installation / "postgres/postmaster.pid").exists()
    assert not (stopped_installation / "postgres.socket").exists()


@pytest.fixture(scope="module")
def stopped_installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a database that nobody serves."""
    folder: Path = tmp_path_factory.mktemp("stopped") / "data"
    with supervisor(folder, "--processes", "1") as running:
        running.ready()
    return folder
