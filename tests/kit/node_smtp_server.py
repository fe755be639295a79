"""smtp-server of npm (nodemailer's), a foreign server on Node's sockets and TLS.

with node_smtp_server("starttls", certificate, tmp_path) as peer:
    ...                                     # send to ("127.0.0.1", peer.port)
    peer.next_message()                     # size and SHA-256 of what it took
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kit.blocking_peer import TlsKind
from kit.node_packages import environment, packages

PROGRAM = Path(__file__).with_name("smtp_server.cjs")
PATIENCE = 30


@dataclass(frozen=True)
class NodeMessage:
    """A message that was answered with 250, without its dot stuffing."""

    octets: int
    digest: str
    secure: bool


@dataclass(frozen=True)
class NodeSmtpServer:
    """The running server."""

    port: int
    process: subprocess.Popen[bytes]

    def next_message(self) -> NodeMessage:
        return NodeMessage(**json.loads(_line(self.process)))


@contextmanager
def node_smtp_server(tls: TlsKind, certificate: bytes, home: Path) -> Iterator[NodeSmtpServer]:
    """Yield the server for as long as the block runs; `certificate` is a key with its chain. Skips the test
    where Node or the packages are missing."""
    (home / "node_modules").symlink_to(packages("smtp_server") / "node_modules")
    module, pem = home / PROGRAM.name, home / "certificate.pem"
    shutil.copy(PROGRAM, module)
    pem.write_bytes(certificate)
    process = subprocess.Popen(
        ["node", str(module), tls, str(pem)],
        cwd=home,
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield NodeSmtpServer(int(_line(process)), process)
    finally:
        process.kill()
        process.wait()


def _line(process: subprocess.Popen[bytes]) -> bytes:
    """Return the next line that it prints."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([process.stdout], [], [], PATIENCE)[0], "smtp-server says nothing"
        piece = os.read(process.stdout.fileno(), 1)
        assert piece, "smtp-server has ended"
        line += piece
    return line
