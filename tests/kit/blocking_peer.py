"""SMTP and HTTP servers on blocking sockets and Python's `ssl`, in threads: they share no code with ours.

    with blocking_peer("starttls", ONE_OCTET, authority) as peer:
        ...                                     # send to ("127.0.0.1", peer.port)
        peer.received                           # size and SHA-256 of each message or body, as on the wire

How a message or a body is read is a `Reading`, how an HTTP answer is written a `Writing`; commands and heads
are read at full speed.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from kit.smtp_sink import TlsAuthority

TlsKind = Literal["clear", "starttls", "implicit"]
TLS_KINDS: tuple[TlsKind, ...] = ("clear", "starttls", "implicit")

BLOCK = 1 << 18
SMALL_WINDOW = 1024
"""The receive buffer of slow readers, in octets (Linux raises it to some 2 kB)."""


@dataclass(frozen=True)
class Reading:
    """How the text of a message is read: pieces of `octets`, a pause of `pause` seconds after each; no piece
    is read after `stop_after` octets. `buffer` is the receive buffer of the socket."""

    octets: int = BLOCK
    pause: float = 0.0
    stop_after: int | None = None
    buffer: int | None = None


AT_ONCE = Reading()
SLOWLY = Reading(octets=8192, pause=0.0005, buffer=SMALL_WINDOW)
ONE_OCTET = Reading(octets=1, buffer=SMALL_WINDOW)
NOT_TO_THE_END = Reading(stop_after=100_000, buffer=SMALL_WINDOW)


@dataclass(frozen=True)
class Writing:
    """How the body of an HTTP answer is written: `octets` of it in pieces of `piece`, a pause of `pause`
    seconds after each; nothing is written after `stop_after` octets."""

    octets: int = 2
    piece: int = BLOCK
    pause: float = 0.0
    stop_after: int | None = None


class Received(NamedTuple):
    """A message that was answered with 250, or the body of a request."""

    octets: int
    digest: str


@dataclass
class BlockingPeer:
    """The running server."""

    tls: TlsKind
    reading: Reading
    context: ssl.SSLContext
    listener: socket.socket
    dialogue: Any
    writing: Writing = Writing()
    received: list[Received] = field(default_factory=list)
    connections: list[socket.socket] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def stop(self) -> None:
        self.stopped.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self.tls == "implicit":
                connection = self._encrypted(connection)
            self.dialogue(self, connection).run()
        except (OSError, ValueError):
            connection.close()

    def _encrypted(self, connection: socket.socket) -> socket.socket:
        encrypted = self.context.wrap_socket(connection, server_side=True)
        self.connections.append(encrypted)
        return encrypted


class _Dialogue:
    """One connection."""

    def __init__(self, peer: BlockingPeer, connection: socket.socket) -> None:
        self._peer = peer
        self._connection = connection
        self._pending = b""

    def _line(self) -> bytes:
        while b"\r\n" not in self._pending:
            more = self._connection.recv(BLOCK)
            if not more:
                raise ConnectionError
            self._pending += more
        line, _, self._pending = self._pending.partition(b"\r\n")
        return line

    def _read(self, octets: int | None) -> Received:
        """Return the next `octets`, or what comes up to a final dot."""
        reading, digest, count = self._peer.reading, hashlib.sha256(self._pending), len(self._pending)
        tail = self._pending[-5:]
        if reading.buffer is not None:
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, reading.buffer)
        while count < octets if octets is not None else not tail.endswith(b"\r\n.\r\n"):
            if reading.stop_after is not None and count > reading.stop_after:
                self._peer.stopped.wait(60)
                raise ConnectionError
            more = self._connection.recv(reading.octets)
            if not more:
                raise ConnectionError
            digest.update(more)
            count += len(more)
            tail = (tail + more)[-5:]
            if reading.pause:
                time.sleep(reading.pause)
        self._pending = b""
        return Received(count, digest.hexdigest())


class SmtpDialogue(_Dialogue):
    """One SMTP session."""

    def run(self) -> None:
        self._say("220 peer.test ESMTP")
        while True:
            verb = self._line().split(b" ")[0].upper()
            if verb == b"EHLO":
                offers_tls = self._peer.tls == "starttls" and not isinstance(self._connection, ssl.SSLSocket)
                extra = ["250-STARTTLS"] * offers_tls
                self._say("250-peer.test", *extra, "250-PIPELINING", "250-8BITMIME", "250 SIZE 90000000")
            elif verb == b"STARTTLS":
                self._say("220 go ahead")
                self._connection = self._peer._encrypted(self._connection)
            elif verb == b"DATA":
                self._say("354 go ahead")
                self._peer.received.append(self._read(None))
                self._say("250 2.0.0 taken")
            elif verb == b"QUIT":
                self._say("221 bye")
                self._connection.close()
                return
            else:
                self._say("250 ok")

    def _say(self, *lines: str) -> None:
        self._connection.sendall("".join(f"{line}\r\n" for line in lines).encode())


class HttpDialogue(_Dialogue):
    """One HTTP/1.1 connection."""

    def run(self) -> None:
        while True:
            length, line = 0, self._line()
            while line:
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                line = self._line()
            self._peer.received.append(self._read(length))
            self._answer(self._peer.writing)

    def _answer(self, writing: Writing) -> None:
        self._connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {writing.octets}\r\n\r\n".encode())
        for start in range(0, writing.octets, writing.piece):
            if writing.stop_after is not None and start > writing.stop_after:
                self._peer.stopped.wait(60)
                raise ConnectionError
            self._connection.sendall(b"a" * min(writing.piece, writing.octets - start))
            if writing.pause:
                time.sleep(writing.pause)


@contextmanager
def blocking_peer(
    tls: TlsKind,
    reading: Reading,
    authority: TlsAuthority,
    *,
    http: Writing | None = None,
) -> Iterator[BlockingPeer]:
    """Yield a server on a free loopback port for as long as the block runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    if reading.buffer is not None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, reading.buffer)
    dialogue = SmtpDialogue if http is None else HttpDialogue
    peer = BlockingPeer(
        tls=tls,
        reading=reading,
        context=authority.server,
        listener=listener,
        dialogue=dialogue,
        writing=http or Writing(),
    )
    threading.Thread(target=peer.accept, daemon=True).start()
    try:
        yield peer
    finally:
        peer.stop()
