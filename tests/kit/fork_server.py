"""The parent of forked workers: `python -m kit.fork_server`, told what to do by lines of JSON.

It has imported the whole product once, so a worker is there in a tenth of a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from kit.world import with_key_ring
from pillarbox import app, worker  # noqa: F401 - imported once, for all children
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability import log
from pillarbox.kernel.process import faults, shared_memory
from pillarbox.kernel.process.fork_server_channel import FACTORY
from pillarbox.kernel.process.parent import die_with_parent
from pillarbox.kernel.process.runtime import Runtime
from pillarbox.kernel.process.workers import READY
from pillarbox.kernel.settings.settings import settings_of

LONGEST = 150.0
"""Seconds: less than a test may take."""

LOG = "workers.log"
SIGNALS = {"stop": signal.SIGTERM, "kill": signal.SIGKILL}


def ended(child: int) -> int:
    """Return the wait status of a child; one that does not end in `LONGEST` seconds is sent SIGTERM, so that
    a test which waits in vain fails and does not hang."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGTERM)
    return os.waitpid(child, 0)[1]


class Parent:
    """Children by their place; one in each at a time. They share a listener that outlives them."""

    def __init__(self) -> None:
        self._memory = shared_memory.create()
        self._settings: dict[str, str] = {}
        self._listener: socket.socket | None = None
        self._children: dict[int, int] = {}
        self._channels: dict[int, socket.socket] = {}

    def obey(self, words: dict[str, Any]) -> str:
        if words["ask"] == "open":
            return self._open(words["settings"])
        if words["ask"] == "close":
            return self._close()
        place = words["place"]
        if words["ask"] == "start":
            return self._start(place, words["fault"])
        if words["ask"] != "wait":
            os.kill(self._children[place], SIGNALS[words["ask"]])
        return str(os.waitstatus_to_exitcode(ended(self._children.pop(place))))

    def _open(self, settings: dict[str, str]) -> str:
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(512)
        port = self._listener.getsockname()[1]
        self._settings = {**settings, "http": f"127.0.0.1:{port}"}
        return str(port)

    def _close(self) -> str:
        for child in self._children.values():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        for channel in self._channels.values():
            channel.close()
        self._children.clear()
        self._channels.clear()
        if self._listener is not None:
            self._listener.close()
        return "closed"

    def _start(self, place: int, fault: str) -> str:
        ours, theirs = socket.socketpair()
        self._channels[place] = ours
        self._children[place] = child = os.fork()
        if child == 0:
            for channel in self._channels.values():
                channel.close()
            self._live(theirs, fault)
        theirs.close()
        return str(child) if ours.recv(len(READY)) else "0"

    def _live(self, channel: socket.socket, fault: str) -> None:
        status = 1
        try:
            die_with_parent(signal.SIGKILL)
            with open(Path(self._settings["data"]) / LOG, "ab") as lines:
                os.dup2(lines.fileno(), 2)
            log.configure("json")
            faults.arm(fault)
            assert self._listener is not None
            listeners = {"http": self._listener.fileno()}
            runtime = Runtime(
                process_id=Ids(SystemClock()).new(),
                index=0,
                count=1,
                shared_memory=self._memory,
                capture_token="token",
                listeners=listeners,
            )
            given = asyncio.run(with_key_ring(settings_of(self._settings)))
            uvloop.run(worker.work(worker.WorkerConfig(given, runtime, FACTORY), channel))
            status = 0
        finally:
            os._exit(status)


if __name__ == "__main__":
    parent = Parent()
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            print(parent.obey(json.loads(line)), flush=True)
