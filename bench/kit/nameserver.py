"""A DNS server for measurements: every domain below `bench.example` has the same right records.

`python -m bench.kit.nameserver HOST KEY` prints its port and answers over UDP until it is ended; nothing is
parsed but the first label and the type, so that it costs little beside what is measured.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.kit import tools

MX, TXT = 15, 16
ANSWER = struct.Struct("!HHHIH")
QUESTION = 4


@dataclass(frozen=True, slots=True)
class NameServer:
    """A running one."""

    pid: int
    port: int


@contextmanager
def name_server(host: str, key: str) -> Iterator[NameServer]:
    """A name server that names `host` and publishes `key`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.kit.nameserver", host, key], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield NameServer(process.pid, int(process.stdout.readline()))
    finally:
        tools.end(process)


def serve(host: str, key: str) -> None:
    server_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    server_socket.bind(("127.0.0.1", 0))
    print(server_socket.getsockname()[1], flush=True)
    exchange = struct.pack("!H", 10) + wire_name(host)
    policy = strings(f"v=spf1 a:{host} ~all")
    public = strings(f"p={key}")
    while True:
        query, peer = server_socket.recvfrom(4096)
        end = query.index(0, 12) + 1 + QUESTION
        kind = int.from_bytes(query[end - 4 : end - 2], "big")
        label = query[13 : 13 + query[12]]
        data = {MX: exchange, TXT: policy if label == b"send" else public}.get(kind)
        server_socket.sendto(response(query, end, kind, data), peer)


def response(query: bytes, end: int, kind: int, data: bytes | None) -> bytes:
    """One answer record, or none."""
    head = query[:2] + struct.pack("!HHHHH", 0x8580, 1, int(data is not None), 0, 0) + query[12:end]
    if data is None:
        return head
    return head + ANSWER.pack(0xC00C, kind, 1, 300, len(data)) + data


def wire_name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def strings(text: str) -> bytes:
    """A TXT value in strings of at most 255 bytes."""
    raw = text.encode()
    parts = [raw[at : at + 255] for at in range(0, len(raw), 255)]
    return b"".join(bytes([len(part)]) + part for part in parts)


if __name__ == "__main__":
    serve(*sys.argv[1:3])
