"""Starting the fork server, and the constants that both ends of its channel share.

This module imports little: loading the program is the longest part of a start, so the fork server starts
before anything else is loaded, even the command line parser.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass

from pillarbox.kernel.security import openssl_cpu
from pillarbox.kernel.settings.setting import PREFIX

NAME = "pillarbox.fork_server"
FACTORY = "pillarbox.application:build"
"""The function that makes the application of a worker (`kernel.process.runtime.Factory`)."""

LONGEST_REQUEST = 4096
MOST_DESCRIPTORS = 200
STDERR = 2


@dataclass(frozen=True, slots=True)
class ForkServerProcess:
    """A running fork server and the supervisor's end of its channel."""

    process: subprocess.Popen[bytes]
    channel: socket.socket


def started(factory: str) -> ForkServerProcess:
    """Start a process that loads what `factory` needs; it dies with the thread that starts it."""
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
    """Return the environment of a worker: this process's without the settings, and with the variables that
    OpenSSL reads when it is loaded. Workers receive the settings over a socket, so that other users cannot
    read them."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return kept | openssl_cpu.variables(kept)
