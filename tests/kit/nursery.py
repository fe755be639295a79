"""The parent of forked workers: `python -m kit.nursery DOOR`, told what to do by lines of JSON."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import Any

import uvloop

from pillarbox import app, worker  # noqa: F401 - imported once, for all children
from pillarbox.kernel import faults, log, shared_memory
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.config import settings_of
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.process import die_with_parent
from pillarbox.kernel.runtime import FACTORY, Runtime
from pillarbox.kernel.workers import READY

SIGNALS = {"stop": signal.SIGTERM, "kill": signal.SIGKILL}


class Parent:
    """Children by their place; one in each at a time."""

    def __init__(self, door: int) -> None:
        self._door = door
        self._memory = shared_memory.create()
        self._settings: dict[str, str] = {}
        self._children: dict[int, int] = {}
        self._channels: dict[int, socket.socket] = {}

    def obey(self, words: dict[str, Any]) -> str | None:
        if "settings" in words:
            self._settings = words["settings"]
            return None
        place = words["place"]
        if words["ask"] == "start":
            return self._start(place, words["fault"])
        if words["ask"] != "wait":
            os.kill(self._children[place], SIGNALS[words["ask"]])
        return str(os.waitstatus_to_exitcode(os.waitpid(self._children[place], 0)[1]))

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
            log.configure("json")
            faults.arm(fault)
            runtime = Runtime(Ids(SystemClock()).new(), 0, 1, self._memory, "token", {"http": self._door})
            given = worker.Given(settings_of(self._settings), runtime, FACTORY)
            uvloop.run(worker.work(given, channel))
            status = 0
        finally:
            os._exit(status)


if __name__ == "__main__":
    parent = Parent(int(sys.argv[1]))
    for line in sys.stdin:
        answer = parent.obey(json.loads(line))
        if answer is not None:
            print(answer, flush=True)
