"""The supervisor's side of its worker processes: start, watch, restart with back-off, stop.

The fork server forks them. A worker gets its settings over a socket pair (settings hold secrets, and other
users can read arguments and environments). The same pair carries its process id and its `ready` back, and
the end of the stream shows the worker that the supervisor is gone. Loading the program takes longest, so the
processes are requested before the database runs, and wait for their settings.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pillarbox.kernel.observability import log
from pillarbox.kernel.process import faults, supervisor_metrics
from pillarbox.kernel.process.children import AdoptedProcess, ended
from pillarbox.kernel.process.fork_server import ForkServer
from pillarbox.kernel.process.fork_server_channel import ForkServerProcess
from pillarbox.kernel.settings.settings import Settings

LONGEST_PID_LINE = 32
"""More octets than a process id and its line end have."""

READY = b"ready\n"
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
STEADY_AFTER = 30.0
MOST_FAILED_STARTS = 3

logger = log.get("supervisor")


class StartError(Exception):
    """The workers do not come up; the message is one sentence for the operator."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """The data that every worker receives when it starts."""

    settings: Settings
    factory: str
    listeners: Mapping[str, int]
    shared_memory: int
    capture_token: str
    metrics_folder: Path | None

    def message(self, index: int) -> bytes:
        """Return one line of JSON for the worker with that index."""
        content = {
            "settings": dict(self.settings.given),
            "sources": dict(self.settings.sources),
            "capture_token": self.capture_token,
            "metrics_folder": None if self.metrics_folder is None else str(self.metrics_folder),
            "index": index,
            "count": self.settings.processes,
        }
        return json.dumps(content).encode() + b"\n"

    def request(self, *, replaces: bool) -> bytes:
        """Return the message to the fork server: the names of the listeners, and the faults that
        tests inject."""
        fault = os.environ.get(faults.VARIABLE, "")
        if replaces and fault:
            fault = faults.for_replacements(fault)
        return json.dumps({"listeners": list(self.listeners), "fault": fault}).encode()

    @property
    def descriptors(self) -> list[int]:
        """The descriptors that the fork server passes on, in the order that it expects."""
        return [self.shared_memory, *self.listeners.values()]


class Worker:
    """One worker slot; a process that dies is replaced."""

    def __init__(
        self, index: int, hand_over: HandOver, fork_server: ForkServer, on_exit: Callable[[int], None]
    ) -> None:
        self._index = index
        self._hand_over = hand_over
        self._fork_server = fork_server
        self._is_final = asyncio.Event()
        self._on_exit = on_exit
        self._process: AdoptedProcess | None = None
        self._last_signal: signal.Signals | None = None
        self._retired = asyncio.Event()
        self.ready = asyncio.Event()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def give(self, hand_over: HandOver) -> None:
        """Set what the process of this slot receives, now and after each restart."""
        self._hand_over = hand_over
        self._is_final.set()

    async def keep(self) -> None:
        """Keep a process running in this slot until `stop`; StartError if none ever gets ready."""
        pause, failed_starts = FIRST_PAUSE, 0
        while not self._retired.is_set():
            started = asyncio.get_running_loop().time()
            status = await self._attempt()
            if self._retired.is_set():
                return
            lived = asyncio.get_running_loop().time() - started
            logger.error(
                "worker.died", index=self._index, worker=self.pid, status=status, seconds=round(lived, 1)
            )
            supervisor_metrics.ended(status)
            failed_starts += 1
            if not self.ready.is_set() and failed_starts >= MOST_FAILED_STARTS:
                raise StartError("The worker processes do not start; the log says why.")
            if lived >= STEADY_AFTER:
                pause = FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _attempt(self) -> int | None:
        """Run one process; return its exit status, None when the system could not even start it."""
        try:
            return await self._run_one()
        except OSError as problem:
            if not self._retired.is_set():
                logger.error("worker.not_started", index=self._index, reason=str(problem))
            return None

    async def _run_one(self) -> int:
        """Run one process from its start to its end; return its exit status."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with ours:
            with theirs:
                request = self._hand_over.request(replaces=self._process is not None)
                self._fork_server.ask(request, [theirs.fileno(), *self._hand_over.descriptors])
            self._process = await forked_process(ours)
            if self._last_signal is not None:
                self._process.send_signal(self._last_signal)
            watch = asyncio.create_task(self._until_ready(ours, self._process))
            status = await ended(self._process)
            watch.cancel()
        self._on_exit(self._process.pid)
        return status

    async def _until_ready(self, channel: socket.socket, process: AdoptedProcess) -> None:
        loop = asyncio.get_running_loop()
        await self._is_final.wait()
        with contextlib.suppress(OSError):
            await loop.sock_sendall(channel, self._hand_over.message(self._index))
            if await loop.sock_recv(channel, len(READY)) == READY:
                # The first one is part of the start; a later one replaces a process that died.
                write = logger.info if self.ready.is_set() else logger.debug
                write("worker.ready", index=self._index, worker=process.pid)
                self.ready.set()

    def pass_on(self, number: signal.Signals) -> None:
        """Signal the process, if it runs."""
        if self._process is not None:
            self._process.send_signal(number)

    def retire(self) -> None:
        """Do not replace the process."""
        self._retired.set()

    def send(self, number: signal.Signals) -> None:
        """Signal the process and do not replace it."""
        self.retire()
        self._last_signal = number
        if self._process is not None:
            self._process.send_signal(number)


async def forked_process(channel: socket.socket) -> AdoptedProcess:
    """Return the process at the other end, once it is forked; raise OSError if the fork failed."""
    line = await asyncio.get_running_loop().sock_recv(channel, LONGEST_PID_LINE)
    if not line.endswith(b"\n"):
        raise ChildProcessError("the fork server made no process")
    return AdoptedProcess(int(line))


class Workers:
    """All workers. The processes are requested at once and load the program; `start` lets them open."""

    def __init__(
        self, hand_over: HandOver, on_exit: Callable[[int], None], first: ForkServerProcess | None = None
    ) -> None:
        self._fork_server = fork_server = ForkServer(hand_over.factory, first)
        with contextlib.suppress(OSError):  # the first worker tries again and logs the failure
            fork_server.begin()
        count = hand_over.settings.processes
        self._workers = [Worker(index, hand_over, fork_server, on_exit) for index in range(count)]
        self._keeping = [asyncio.create_task(worker.keep()) for worker in self._workers]

    @property
    def fork_server_pid(self) -> int | None:
        return self._fork_server.pid

    @property
    def worker_pids(self) -> dict[int, int]:
        """The process of each slot that has one."""
        return {index: worker.pid for index, worker in enumerate(self._workers) if worker.pid is not None}

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers and of the fork server."""
        every = [self._fork_server.pid, *(worker.pid for worker in self._workers)]
        return [pid for pid in every if pid is not None]

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
        """Send all SIGTERM, wait `grace` seconds, then kill those that are left."""
        for worker in self._workers:
            # A process that was requested and not forked yet will not be, and nobody misses it.
            worker.retire()
        await self._fork_server.end()
        self.send(signal.SIGTERM)
        _, late = await asyncio.wait(self._keeping, timeout=grace)
        if late:
            logger.warning("worker.late", count=len(late))
            self.send(signal.SIGKILL)
        await asyncio.gather(*self._keeping, return_exceptions=True)

    def pass_on(self, number: signal.Signals) -> None:
        """Signal all workers; one that a signal ends is replaced."""
        for worker in self._workers:
            worker.pass_on(number)

    def send(self, number: signal.Signals) -> None:
        """Signal all workers and start no more."""
        self._fork_server.kill()
        for worker in self._workers:
            worker.send(number)
