"""Where mail goes to: Postfix's smtp-sink for throughput, and a sink of our own that notes the times."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.kit import tools

BACKLOG = 1024
GREETED = b"250-sink.example\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES\r\n"
COUNTED = re.compile(rb"mesg=(\d+)")
TAIL = 256


@dataclass(frozen=True, slots=True)
class SmtpSink:
    """A running smtp-sink."""

    port: int
    pid: int
    counts: Path

    @property
    def messages(self) -> int:
        """How many mails it took, by its own count."""
        with self.counts.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            seen = COUNTED.findall(file.read())
        return int(seen[-1]) if seen else 0


@contextmanager
def smtp_sink(folder: Path, port: int = 0) -> Iterator[SmtpSink]:
    """smtp-sink on loopback, counting."""
    port = port or tools.free_port()
    counts = folder / f"smtp-sink.{time.monotonic_ns()}.log"
    as_user = ["-u", "nobody"] if os.geteuid() == 0 else []
    command = [tools.program("smtp-sink"), *as_user, "-c", f"127.0.0.1:{port}", str(BACKLOG)]
    with tools.child(command, counts) as process:
        tools.wait_for(lambda: tools.answers(port) or process.poll() is not None, "smtp-sink")
        if process.poll() is not None:
            raise tools.Missing(f"smtp-sink does not start: {counts.read_text().strip()}")
        yield SmtpSink(port, process.pid, counts)


@dataclass(slots=True)
class Arrival:
    """One mail at our sink; times are of the monotonic clock."""

    first_byte: float
    done: float = 0.0
    content: bytes = b""


class StampSink:
    """A small SMTP server that notes when the first byte of each mail's dialogue came, and its end."""

    def __init__(self, port: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self.arrivals: list[Arrival] = []
        self._came = threading.Condition()
        self._open: set[socket.socket] = set()

    def wait_for(self, count: int, seconds: float = 30.0) -> None:
        """Return when `count` mails have come."""
        with self._came:
            if not self._came.wait_for(lambda: len(self.arrivals) >= count, seconds):
                raise TimeoutError(f"{count - len(self.arrivals)} mails did not reach the sink")

    def serve(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open.add(peer)
            threading.Thread(target=self._talk, args=(peer,), daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for peer in list(self._open):
            # A close alone would wait for the thread that reads.
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)

    def _talk(self, peer: socket.socket) -> None:
        try:
            self._dialogue(peer)
        except OSError:
            pass
        finally:
            self._open.discard(peer)
            peer.close()

    def _dialogue(self, peer: socket.socket) -> None:
        peer.sendall(b"220 sink.example ESMTP\r\n")
        buffer = b""
        arrival: Arrival | None = None
        while True:
            while b"\r\n" not in buffer:
                chunk = peer.recv(65536)
                if not chunk:
                    return
                # A session that is opened for this mail counts from its first command.
                arrival = arrival or Arrival(time.monotonic())
                buffer += chunk
            line, _, buffer = buffer.partition(b"\r\n")
            verb = line[:4].upper()
            if verb == b"DATA":
                peer.sendall(b"354 go on\r\n")
                buffer = self._content(peer, buffer, arrival or Arrival(time.monotonic()))
                arrival = None
            elif verb == b"QUIT":
                peer.sendall(b"221 2.0.0 bye\r\n")
                return
            elif verb == b"EHLO":
                peer.sendall(GREETED)
            else:
                peer.sendall(b"250 2.0.0 ok\r\n")

    def _content(self, peer: socket.socket, buffer: bytes, arrival: Arrival) -> bytes:
        while b"\r\n.\r\n" not in buffer:
            chunk = peer.recv(65536)
            if not chunk:
                raise OSError("the client left")
            buffer += chunk
        arrival.content, _, rest = buffer.partition(b"\r\n.\r\n")
        arrival.done = time.monotonic()
        peer.sendall(b"250 2.0.0 kept\r\n")
        with self._came:
            self.arrivals.append(arrival)
            self._came.notify_all()
        return rest


@contextmanager
def stamp_sink(port: int = 0) -> Iterator[StampSink]:
    """Our own sink for as long as the block runs."""
    sink = StampSink(port)
    threading.Thread(target=sink.serve, daemon=True).start()
    try:
        yield sink
    finally:
        sink.close()
