"""The nursery as a process: how it is started, and what both ends of its channel know.

Imports as little as can be: loading the program is the longest part of a start, so it begins before anything
else is loaded, even what reads the command line.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass

from pillarbox.kernel.security import openssl_cpu
from pillarbox.kernel.settings.table import PREFIX

NAME = "pillarbox.fork_server"
FACTORY = "pillarbox.app:build"
"""What makes the application of a worker (`kernel.process.runtime.Factory`)."""

LONGEST_REQUEST = 4096
MOST_DESCRIPTORS = 200
STDERR = 2


@dataclass(frozen=True, slots=True)
class ForkServerProcess:
    """A running nursery and our end of its channel."""

    process: subprocess.Popen[bytes]
    channel: socket.socket


def started(factory: str) -> ForkServerProcess:
    """A new one that loads what `factory` needs; it dies with the thread that starts it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", NAME, str(theirs.fileno()), factory],
            pass_fds=(theirs.fileno(),),
            env=environment(),
            stdin=subprocess.DEVNULL,
            # Standard output carries the ready line and nothing else.
            stdout=STDERR,
            # A Ctrl-C on the terminal is for the supervisor alone.
            start_new_session=True,
        )
    ours.setblocking(False)
    return ForkServerProcess(process, ours)


def environment() -> dict[str, str]:
    """Ours without the settings: workers are told them, and whoever may look cannot read them there. With it
    what OpenSSL has to know when it is loaded."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return kept | openssl_cpu.told(kept)
