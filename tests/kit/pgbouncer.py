"""PgBouncer in front of a test's database, in a folder of its own (Debian package pgbouncer).

with pgbouncer(database_url, "session") as url:     # skips where it cannot run, and says why
    …connect to `url`
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

PROGRAM = "/usr/sbin/pgbouncer"
PORT = 6432
SOCKET = f".s.PGSQL.{PORT}"
PATIENCE = 20.0
SERVER_SOCKET = ".s.PGSQL.5432"
REACHABLE = "/tmp"
"""Where the account of the database may look; the folder in it has a name of its own."""

CONFIGURATION = """\
[databases]
* = host={server}

[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 500
pidfile =
logfile = {folder}/log
"""


@contextmanager
def pgbouncer(database_url: str, mode: str, *, size: int = 100) -> Iterator[str]:
    """Yield the database behind PgBouncer in this pool mode, for as long as the block runs."""
    if not Path(PROGRAM).exists():
        pytest.skip(f"{PROGRAM} is not installed (package pgbouncer)")
    parts = urlsplit(database_url)
    query = parse_qs(parts.query)
    server, user = query["host"][0], query["user"][0]
    owner = os.stat(server)
    folder = Path(tempfile.mkdtemp(prefix="pillarbox-pgbouncer-", dir=REACHABLE))
    near = folder / "server"
    near.mkdir()
    (folder / "users").write_text(f'"{user}" ""\n')
    (folder / "ini").write_text(
        CONFIGURATION.format(server=near, port=PORT, folder=folder, mode=mode, size=size)
    )
    account = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
    for path in (folder, *folder.iterdir()):
        os.chown(path, owner.st_uid, owner.st_gid)
    forwarder = Forwarder(near / SERVER_SOCKET, f"{server}/{SERVER_SOCKET}")
    if account:
        os.chown(near / SERVER_SOCKET, owner.st_uid, owner.st_gid)
    running = subprocess.Popen([PROGRAM, str(folder / "ini")], **account)  # type: ignore[call-overload]
    try:
        _wait_for(folder / SOCKET, running, folder / "log")
        yield f"{parts.scheme}://{parts.path}?host={quote(str(folder))}&port={PORT}&user={user}"
    finally:
        running.terminate()
        running.wait(PATIENCE)
        forwarder.close()
        shutil.rmtree(folder, ignore_errors=True)


class Forwarder:
    """Takes sessions at one socket to another one, in threads: PgBouncer runs under the account of the
    database, which may not enter the folders above its own."""

    def __init__(self, near: Path, far: str) -> None:
        self._far = far
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(near))
        self._listening.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more sessions; those that there are end with their clients."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._far)
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=_forward, args=ends, daemon=True).start()


def _forward(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while octets := source.recv(65536):
            target.sendall(octets)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _listens(path: Path) -> bool:
    """Return whether the program takes connections; the socket lies there a moment earlier."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _wait_for(path: Path, running: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not _listens(path):
        if running.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(log.read_text() if log.exists() else "PgBouncer does not start")
        time.sleep(0.02)
