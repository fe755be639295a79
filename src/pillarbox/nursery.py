"""The nursery: has loaded the program once, and forks a worker process whenever the supervisor asks.

Started by the supervisor as `python -m pillarbox.nursery DESCRIPTOR FACTORY`; the descriptor is a socket, and
each message on it asks for one worker and carries the descriptors that it gets, its channel first.

What a fork must not copy is not here: there is no event loop, no second thread, no connection, no log line
and no random number before a worker is born (docs/decisions/0025-fork-server.md). A worker belongs to the
supervisor and not to us, so nothing happens to it when we die.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass

from pillarbox import worker
from pillarbox.kernel.nursery_process import LONGEST_REQUEST, MOST_DESCRIPTORS, NAME
from pillarbox.kernel.process import die_with_parent, rename

WORKER_NAME = "pillarbox.worker"
MOMENT = 0.0005


@dataclass(frozen=True, slots=True)
class Request:
    """One worker as the supervisor wants it."""

    channel: socket.socket
    shared_memory: int
    doors: dict[str, int]
    fault: str

    def release(self) -> None:
        """Hold nothing of it any more: a door that nobody serves must not look open."""
        self.channel.close()
        for descriptor in (self.shared_memory, *self.doors.values()):
            os.close(descriptor)


def main() -> int:
    """Serve the supervisor, or be one of the workers; the exit status."""
    supervisor = os.getppid()
    die_with_parent(signal.SIGKILL)
    os.umask(0o077)
    asking, factory = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    load(factory)
    while (request := next_request(asking)) is not None:
        if is_newborn(supervisor):
            asking.close()
            rename(NAME, WORKER_NAME)
            request.channel.sendall(b"%d\n" % os.getpid())
            return worker.run(
                request.channel, factory, request.shared_memory, request.doors, fault=request.fault
            )
        request.release()
    return 0


def load(factory: str) -> None:
    """Have everything in memory that a worker needs, in pages that the workers share."""
    # Nothing that loading leaves behind is garbage; the worker turns the collector on again.
    gc.disable()
    with contextlib.suppress(Exception):
        worker.factory_of(factory)  # if it cannot be loaded, the worker says so
        worker.http_protocol()
    gc.freeze()


def next_request(asking: socket.socket) -> Request | None:
    """The next one; None when the supervisor wants no more."""
    text, descriptors, _, _ = socket.recv_fds(
        asking, LONGEST_REQUEST, MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
    )
    if not text:
        return None
    content = json.loads(text)
    channel, shared_memory, *doors = descriptors
    return Request(
        channel=socket.socket(fileno=channel),
        shared_memory=shared_memory,
        doors=dict(zip(content["doors"], doors, strict=True)),
        fault=content["fault"],
    )


def is_newborn(supervisor: int) -> bool:
    """Fork: False here, True in the new process, which is a child of the supervisor.

    There are two forks with an exit between them: an orphan is given to the nearest ancestor that takes
    orphans, and that is the supervisor (prctl(2), PR_SET_CHILD_SUBREAPER).
    """
    try:
        between = os.fork()
    except OSError:
        return False
    if between:
        os.waitpid(between, 0)
        return False
    between = os.getpid()
    try:
        if os.fork():
            os._exit(0)
    except OSError:
        os._exit(1)
    while os.getppid() == between:
        time.sleep(MOMENT)
    die_with_parent(signal.SIGTERM)
    if os.getppid() != supervisor:
        os._exit(0)
    os.setsid()
    return True


if __name__ == "__main__":
    sys.exit(main())
