"""The supervisor's side of its worker processes: start, watch, restart with back-off, stop.

A worker gets all it needs over a socket pair that it inherits (settings hold secrets, and arguments and
environments can be read by others). The same pair carries its `ready` back, and its end tells the worker
that the supervisor is gone. Loading the program takes longest, so the processes are started before the
database is, and wait for what they are given.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pillarbox.kernel import faults, log
from pillarbox.kernel.config import Settings
from pillarbox.kernel.process import ended
from pillarbox.kernel.setting_table import PREFIX

READY = b"ready\n"
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
STEADY_AFTER = 30.0
MOST_FAILED_STARTS = 3
STDERR = 2

logger = log.get("supervisor")


class StartError(Exception):
    """The workers do not come up; the message is one sentence for the operator."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """What every worker is given."""

    settings: Settings
    factory: str
    doors: Mapping[str, int]
    shared_memory: int
    capture_token: str
    figures: Path | None

    def message(self, index: int) -> bytes:
        """One line of JSON for the worker with that index."""
        content = {
            "settings": dict(self.settings.given),
            "doors": dict(self.doors),
            "shared_memory": self.shared_memory,
            "capture_token": self.capture_token,
            "figures": None if self.figures is None else str(self.figures),
            "index": index,
            "count": self.settings.processes,
        }
        return json.dumps(content).encode() + b"\n"

    def environment(self, *, replaces: bool) -> dict[str, str]:
        """Ours without the settings, which the worker has already, and with the faults that befall it."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        fault = os.environ.get(faults.VARIABLE, "")
        if fault := faults.for_replacements(fault) if replaces else fault:
            environment[faults.VARIABLE] = fault
        return environment


class Worker:
    """One place in the row of workers, held by one process after the other."""

    def __init__(self, index: int, hand_over: HandOver, on_exit: Callable[[int], None]) -> None:
        self._index = index
        self._hand_over = hand_over
        self._is_final = asyncio.Event()
        self._on_exit = on_exit
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = asyncio.Event()
        self.ready = asyncio.Event()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def give(self, hand_over: HandOver) -> None:
        """What the process of this place is waiting for, now and after each restart."""
        self._hand_over = hand_over
        self._is_final.set()

    async def keep(self) -> None:
        """Keep a process in this place until `stop`; StartError if none ever gets ready."""
        pause, failed_starts = FIRST_PAUSE, 0
        while not self._stopping.is_set():
            started = asyncio.get_running_loop().time()
            status = await self._attempt()
            if self._stopping.is_set():
                return
            lived = asyncio.get_running_loop().time() - started
            logger.error(
                "worker.died", index=self._index, worker=self.pid, status=status, seconds=round(lived, 1)
            )
            failed_starts += 1
            if not self.ready.is_set() and failed_starts >= MOST_FAILED_STARTS:
                raise StartError("The worker processes do not start; the log says why.")
            if lived >= STEADY_AFTER:
                pause = FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _attempt(self) -> int | None:
        """The exit status of one process; None when the system could not even start it."""
        try:
            return await self._run_one()
        except OSError as problem:
            logger.error("worker.not_started", index=self._index, reason=str(problem))
            return None

    async def _run_one(self) -> int:
        """One process from its start to its end; its exit status."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._process = self._spawn(theirs.fileno())
            watch = asyncio.create_task(self._until_ready(ours, self._process))
            status = await ended(self._process)
            watch.cancel()
        self._on_exit(self._process.pid)
        return status

    def _spawn(self, channel: int) -> subprocess.Popen[bytes]:
        inherited = (channel, self._hand_over.shared_memory, *self._hand_over.doors.values())
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "pillarbox.worker", str(channel), self._hand_over.factory],
            pass_fds=inherited,
            env=self._hand_over.environment(replaces=self._process is not None),
            stdin=subprocess.DEVNULL,
            # Standard output carries the ready line and nothing else.
            stdout=STDERR,
            # A Ctrl-C on the terminal is for the supervisor alone.
            start_new_session=True,
        )

    async def _until_ready(self, channel: socket.socket, process: subprocess.Popen[bytes]) -> None:
        loop = asyncio.get_running_loop()
        channel.setblocking(False)
        await self._is_final.wait()
        with contextlib.suppress(OSError):
            await loop.sock_sendall(channel, self._hand_over.message(self._index))
            if await loop.sock_recv(channel, len(READY)) == READY:
                logger.info("worker.ready", index=self._index, worker=process.pid)
                self.ready.set()

    def send(self, number: signal.Signals) -> None:
        """Signal the process, and start no other one after it."""
        self._stopping.set()
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


class Workers:
    """The row of workers. They are started at once and load the program; `start` lets them open."""

    def __init__(self, hand_over: HandOver, on_exit: Callable[[int], None]) -> None:
        count = hand_over.settings.processes
        self._workers = [Worker(index, hand_over, on_exit) for index in range(count)]
        self._keeping = [asyncio.create_task(worker.keep()) for worker in self._workers]

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def start(self, hand_over: HandOver) -> None:
        """Return when every worker is ready; StartError if one does not come up."""
        for worker in self._workers:
            worker.give(hand_over)
        ready = asyncio.create_task(self._all_ready())
        try:
            await asyncio.wait([ready, *self._keeping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        for task in self._keeping:
            if task.done():
                task.result()

    async def _all_ready(self) -> None:
        for worker in self._workers:
            await worker.ready.wait()

    async def stop(self, grace: float) -> None:
        """Ask all to finish, give them `grace` seconds, then end those that are left."""
        self.send(signal.SIGTERM)
        _, late = await asyncio.wait(self._keeping, timeout=grace)
        if late:
            logger.warning("worker.late", count=len(late))
            self.send(signal.SIGKILL)
        await asyncio.gather(*self._keeping, return_exceptions=True)

    def send(self, number: signal.Signals) -> None:
        for worker in self._workers:
            worker.send(number)
