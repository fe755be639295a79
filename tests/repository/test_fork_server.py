"""The fork server: workers are forked from a process that holds nothing a fork must not copy (OPS-03)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from kit.peers import eventually
from pillarbox.kernel.process.children import stat_fields
from repository.running import TESTS, Running, Watched, children_of, command_of, supervisor

HOLDS = """
import asyncio, gc, os, socket
from pillarbox.kernel.ids import RandomBytes
from pillarbox.fork_server import load

load("pillarbox.application:build")
kept = gc.get_objects()
gc.unfreeze()
kept += gc.get_objects()
print(len(os.listdir("/proc/self/task")))
print(sum(isinstance(thing, (asyncio.AbstractEventLoop, socket.socket)) for thing in kept))
print(sum(len(thing._supply) for thing in kept if isinstance(thing, RandomBytes)))
"""

RANDOM = """
import os
from pillarbox.kernel.ids import RandomBytes

random_bytes = RandomBytes()
random_bytes(8)
for _ in range(2):
    child = os.fork()
    if child == 0:
        os.write(1, random_bytes(16).hex().encode() + b"\\n")
        os._exit(0)
    os.waitpid(child, 0)
os.write(1, random_bytes(16).hex().encode() + b"\\n")
"""


def output_of(program: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent / "src")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def dead_children(running: Running) -> list[int]:
    return [pid for pid in children_of(running.process.pid) if stat_fields(str(pid))[0] == b"Z"]


def test_the_loaded_program_has_one_thread_and_no_loop_socket_or_random_bytes() -> None:
    assert output_of(HOLDS) == ["1", "0", "0"]


def test_random_bytes_are_not_carried_over_a_fork() -> None:
    assert len(set(output_of(RANDOM))) == 3


def test_workers_are_children_of_the_supervisor_under_their_own_name_and_session(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data") as running:
        running.ready()
        assert children_of(running.fork_server()) == []
        assert len(running.workers()) == 2
        for worker in running.workers():
            assert os.getsid(worker) == worker
            assert b"pillarbox.fork_server" not in command_of(worker)
            assert len(command_of(worker)) == len(command_of(running.fork_server()))


def test_a_killed_fork_server_is_replaced_and_no_worker_notices(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data") as running:
        running.ready()
        fork_server, workers = running.fork_server(), running.workers()
        os.kill(fork_server, signal.SIGKILL)
        running.log.wait_for("fork_server.died")
        assert running.workers() == workers
        os.kill(workers[0], signal.SIGKILL)
        running.log.wait_for("worker.ready")
        assert running.fork_server() != fork_server
        assert workers[1] in running.workers()
        assert len(running.workers()) == 2
        family = Watched(running.family())
        running.send(signal.SIGTERM)
        assert running.exit_status() == 0
        assert family.all_ended()


def test_without_a_fork_server_workers_still_end_with_their_supervisor(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data") as running:
        running.ready()
        os.kill(running.fork_server(), signal.SIGKILL)
        running.log.wait_for("fork_server.died")
        family = Watched(running.family())
        running.send(signal.SIGKILL)
        assert running.exit_status() == -signal.SIGKILL
        assert family.all_ended()


def test_a_frozen_fork_server_does_not_delay_the_stop(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data") as running:
        running.ready()
        os.kill(running.fork_server(), signal.SIGSTOP)
        os.kill(running.workers()[0], signal.SIGKILL)
        running.log.wait_for("worker.died")
        running.send(signal.SIGTERM)
        assert running.exit_status() == 0


def test_the_sessions_of_a_killed_database_are_not_left_as_dead_children(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data", "--processes", "1") as running:
        running.ready()
        os.kill(running.postmaster(), signal.SIGKILL)
        running.log.wait_for("postgres.restarted")
        eventually(lambda: dead_children(running) == [], "they are collected")
