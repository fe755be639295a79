"""A Unix socket on which the supervisor gives its secret settings to commands on this machine.

The socket is in the data folder and answers only its own user and root. The secrets are in no file, so none
is left when the supervisor is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pillarbox.kernel.storage.data_folder import RUN_FOLDER, FolderError

SOCKET_FILE = "supervisor.sock"
ANSWER_TIMEOUT = 5.0
ROOT = 0
CREDENTIALS = struct.Struct("3i")
"""Process, user and group of a peer (unix(7), SO_PEERCRED)."""


class SilentError(FolderError):
    """The server runs but does not answer."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"The Pillarbox that runs with the data folder {folder} does not answer this command: "
            "run it as the server's user, or as root."
        )


class SecretsChannel:
    """The supervisor's side. Each client that connects gets `secrets` as JSON."""

    def __init__(self, folder: Path, secrets: Mapping[str, object]) -> None:
        self._path = folder / RUN_FOLDER
        self._secrets = json.dumps(secrets).encode()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Answer from now on; a socket that a killed server left is replaced."""
        (self._path / SOCKET_FILE).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with short(self._path) as folder:
            listener.bind(f"{folder}/{SOCKET_FILE}")
        (self._path / SOCKET_FILE).chmod(0o600)
        self._server = await asyncio.start_unix_server(self._send, sock=listener)

    async def _send(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("socket").getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size
        )
        if CREDENTIALS.unpack(peer)[1] in (os.getuid(), ROOT):
            writer.write(self._secrets)
        writer.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            (self._path / SOCKET_FILE).unlink(missing_ok=True)


def ask(folder: Path) -> dict[str, Any]:
    """Return the secrets of the server that runs with this folder; raise SilentError where it does
    not answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_TIMEOUT)
        try:
            with short(folder / RUN_FOLDER) as place:
                connection.connect(f"{place}/{SOCKET_FILE}")
            with connection.makefile("rb") as answer:
                secrets: dict[str, Any] = json.loads(answer.read())
        except (OSError, ValueError):
            raise SilentError(folder) from None
    return secrets


@contextmanager
def short(folder: Path) -> Iterator[str]:
    """Yield a short name for a folder: the path of a socket has 107 octets at the most (unix(7))."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
