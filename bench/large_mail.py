"""How fast one large message leaves: 40 MB on a kept connection, in clear and over STARTTLS and implicit TLS.

The server reads with blocking sockets in a process of its own, and the client runs on uvloop as workers do.
"""

from __future__ import annotations

import multiprocessing
import socket
import ssl
import tempfile
import time
from datetime import UTC, datetime
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import uvloop

from bench.kit.results import Report, at_least, ended
from pillarbox.kernel.security.certificates import self_made
from pillarbox.mail.smtp.client import SmtpConnection, SmtpContent
from pillarbox.mail.smtp.tls import TlsMode

LINE = b"0123456789abcdef" * 4 + b"\r\n"
OCTETS = 40_000_000
KINDS = {"in clear": TlsMode.NONE, "STARTTLS": TlsMode.OPPORTUNISTIC, "implicit TLS": TlsMode.IMPLICIT}
RATE = 50.0


def measure(report: Report) -> None:
    content = SmtpContent(b"Subject: large\r\n\r\n" + LINE * (OCTETS // len(LINE)))
    repetitions = 3 if report.short else 15
    for kind, mode in KINDS.items():
        rate = uvloop.run(best_rate(mode, content, repetitions))
        report.result(f"a message of 40 MB, {kind}", rate, "MB/s", at_least(RATE))


async def best_rate(mode: TlsMode, content: SmtpContent, repetitions: int) -> float:
    """The best of several transactions on one connection, in 1,000,000 octets a second."""
    with tempfile.TemporaryDirectory() as folder:
        certificate = self_made(Path(folder), "localhost", datetime.now(UTC))
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.Process(target=serve, args=(mode, certificate, theirs), daemon=True)
        server.start()
        try:
            connection = await SmtpConnection.open(
                ("127.0.0.1", ours.recv()),
                server_name="localhost",
                hello="mx.pillar.example",
                tls=mode,
                trust=ssl.create_default_context(cafile=str(certificate)),
            )
            assert isinstance(connection, SmtpConnection), connection
            return max([await rate(connection, content) for _ in range(repetitions)])
        finally:
            server.kill()
            server.join()


async def rate(connection: SmtpConnection, content: SmtpContent) -> float:
    began = time.perf_counter()
    done = await connection.send("ada@harbor.example", ["bob@quay.example"], content)
    assert done.final is not None, done.answers
    return OCTETS / 1e6 / (time.perf_counter() - began)


def serve(mode: TlsMode, certificate: Path, port: Pipe) -> None:
    """One session of an SMTP server that reads as fast as it can."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listener = socket.create_server(("127.0.0.1", 0))
    port.send(listener.getsockname()[1])
    sock, _ = listener.accept()
    if mode is TlsMode.IMPLICIT:
        sock = context.wrap_socket(sock, server_side=True)
    sock.sendall(b"220 peer\r\n")
    while True:
        data = sock.recv(65536)
        if data.startswith(b"EHLO"):
            offers = b"250-STARTTLS\r\n" if mode is TlsMode.OPPORTUNISTIC else b""
            sock.sendall(b"250-peer\r\n" + offers + b"250 SIZE 90000000\r\n")
        elif data.startswith(b"STARTTLS"):
            sock.sendall(b"220 go\r\n")
            sock = context.wrap_socket(sock, server_side=True)
        elif data.startswith(b"DATA"):
            sock.sendall(b"354 go\r\n")
            tail = b""
            while not tail.endswith(b"\r\n.\r\n"):
                tail = (tail + sock.recv(1 << 18))[-5:]
            sock.sendall(b"250 taken\r\n")
        else:
            sock.sendall(b"250 ok\r\n")


if __name__ == "__main__":
    ended("large_mail", measure, __doc__)
