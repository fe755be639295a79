"""The fork server: loads the program once and forks a worker process whenever the supervisor requests one.

Started by the supervisor as `python -m pillarbox.fork_server DESCRIPTOR FACTORY`; the descriptor is a
socket, and each message on it requests one worker and carries the descriptors that it gets, its channel
first.

This process holds nothing that a fork must not copy: it has no event loop, no second thread, no connection,
and before the fork it writes no log line and draws no random number (docs/decisions/0002). A worker is a
child of the supervisor, so it keeps running when the fork server dies.
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
from pillarbox.kernel.process.children import rename
from pillarbox.kernel.process.fork_server_channel import LONGEST_REQUEST, MOST_DESCRIPTORS, NAME
from pillarbox.kernel.process.parent import die_with_parent
from pillarbox.kernel.process.signals import ignore_all_but_stops

WORKER_NAME = "pillarbox.worker"
MOMENT = 0.0005


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """A request for one worker."""

    channel: socket.socket
    shared_memory: int
    listeners: dict[str, int]
    fault: str

    def release(self) -> None:
        """Close all descriptors of the request: a listener that no process serves must not look open."""
        self.channel.close()
        for descriptor in (self.shared_memory, *self.listeners.values()):
            os.close(descriptor)


def main() -> int:
    """Serve the supervisor, or in the forked process run the worker; the exit status."""
    supervisor = os.getppid()
    die_with_parent(signal.SIGKILL)
    ignore_all_but_stops()
    os.umask(0o077)
    requests, factory = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    load(factory)
    while (request := next_request(requests)) is not None:
        if forked_worker(supervisor):
            requests.close()
            rename(NAME, WORKER_NAME)
            request.channel.sendall(b"%d\n" % os.getpid())
            return worker.run(
                request.channel, factory, request.shared_memory, request.listeners, fault=request.fault
            )
        request.release()
    return 0


def load(factory: str) -> None:
    """Load everything that a worker needs, into pages that the workers share."""
    # Loading leaves no garbage behind; the worker turns the collector on again.
    gc.disable()
    with contextlib.suppress(Exception):
        worker.factory_of(factory)  # if it cannot be loaded, the worker says so
        worker.http_protocol()
    gc.freeze()


def next_request(requests: socket.socket) -> WorkerRequest | None:
    """Return the next request; None when the supervisor has closed the channel."""
    text, descriptors, _, _ = socket.recv_fds(
        requests, LONGEST_REQUEST, MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
    )
    if not text:
        return None
    content = json.loads(text)
    channel, shared_memory, *listeners = descriptors
    return WorkerRequest(
        channel=socket.socket(fileno=channel),
        shared_memory=shared_memory,
        listeners=dict(zip(content["listeners"], listeners, strict=True)),
        fault=content["fault"],
    )


def forked_worker(supervisor: int) -> bool:
    """Fork; return False here, True in the new process, which is a child of the supervisor.

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
