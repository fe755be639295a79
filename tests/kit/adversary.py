"""Inputs as large and as odd as can be, and a client that sends them from a process of its own.

What makes and sends fifty megabytes takes processor time, which must not be mistaken for that of the server
in the test's process. So this module imports nothing of the product, and its `Sender` works elsewhere.
"""

from __future__ import annotations

import asyncio
import base64
import json
import multiprocessing
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

KIB = 1024
MIB = 1024 * KIB
PATIENCE = 120.0

Shape = Callable[[int], bytes]


def repeated(begin: bytes, unit: bytes, end: bytes = b"") -> Shape:
    """Return as many units as there is room for."""

    def shape(size: int) -> bytes:
        return begin + unit * max(1, (size - len(begin) - len(end)) // len(unit)) + end

    return shape


def nested(size: int) -> bytes:
    return b"[" * (size // 2) + b"]" * (size // 2)


def names(size: int) -> bytes:
    return b"{%b}" % b",".join([b'"%06x":0' % n for n in range(size // 11)])


VALUES: dict[str, Shape] = {
    "deep": nested,
    "deep and open": repeated(b"", b'{"a":'),
    "numbers": repeated(b"[", b"-6,", b"0]"),
    "octets": repeated(b"[", b"7,", b"0]"),
    "fractions": repeated(b"[", b"1.5,", b"0]"),
    "a long number": repeated(b"0.", b"1"),
    "literals": repeated(b"[", b"null,", b"0]"),
    "small strings": repeated(b"[", b'"a",', b'"a"]'),
    "small objects": repeated(b"[", b'{"a":1},', b"{}]"),
    "names": names,
    "white space": repeated(b"[", b" ", b"0]"),
    "one string": repeated(b'"', b"a", b'"'),
    "one string of blanks": repeated(b'"', b" ", b'"'),
    "one string of commas": repeated(b'"', b"a@b.cd,", b'"'),
    "one string of quotes": repeated(b'"', b'\\"', b'"'),
    "one string of line ends": repeated(b'"', b"\\n", b'"'),
    "one string of escapes": repeated(b'"', b"\\u00e9", b'"'),
    "one string beyond ASCII": repeated(b'"', "é ".encode(), b'"'),
    "one string of brackets": repeated(b'"', b"[(<", b'"'),
}
"""JSON values."""

STRINGS = [shape for shape in VALUES if shape.startswith("one string")]

HTML: dict[str, tuple[str, str]] = {
    "deep": ("", "<div>"),
    "paragraphs": ("", "<p>x"),
    "preformatted lines": ("<pre>", "a\n"),
    "preformatted empty lines": ("<pre>", "\n"),
    "words": ("", "a "),
    "one word": ("", "a"),
    "entities": ("", "&amp;"),
    "angle brackets": ("", "<"),
    "attributes": ("<a ", "a=1 "),
    "quotes": ("", '<a x="'),
    "a style": ("<p style='", "; "),
    "links": ("", "<a href='https://a.example/'>b</a>"),
    "pictures": ("", "<img src='cid:a'>"),
    "invisible": ("", "\u200b"),
    "comments": ("", "<!--"),
    "placeholders": ("", "{{{A}}}"),
    "fallbacks that end in no line": ("", "{{{A|b\n"),
}


def html(shape: str, size: int) -> str:
    begin, unit = HTML[shape]
    return begin + unit * (size // len(unit.encode()) - 1)


def part(kind: bytes, content: bytes, encoding: bytes = b"8bit") -> bytes:
    return b"Content-Type: %b\r\nContent-Transfer-Encoding: %b\r\n\r\n%b\r\n" % (kind, encoding, content)


def field(name: bytes, unit: bytes) -> Shape:
    """Return a message with one long header field, folded."""
    return repeated(name + b": ", unit * 10 + b"\r\n ", b"x\r\n\r\ntext\r\n")


MESSAGES: dict[str, Shape] = {
    "lines": repeated(b"\r\n", b"a\r\n"),
    "dots": repeated(b"\r\n", b".a\r\n"),
    "fields": repeated(b"", b"X-A: b\r\n", b"\r\ntext\r\n"),
    "received": repeated(b"", b"Received: by a; b\r\n", b"\r\ntext\r\n"),
    "signatures": repeated(
        b"", b"DKIM-Signature: v=1; d=quay.example; s=a; b=x; bh=x; a=rsa-sha256; h=from\r\n", b"\r\n"
    ),
    "addresses": field(b"To", b"a@b.example, "),
    "comments": field(b"Cc", b"((a) "),
    "encoded words": field(b"Subject", b"=?utf-8?q?=c3=a9?= "),
    "references": field(b"References", b"<a@b.example> "),
    "parameters": field(b"Content-Type: text/plain; a=b", b"; a=b"),
    "parts": repeated(
        b"Content-Type: multipart/mixed; boundary=a\r\n\r\n", b"--a\r\n\r\nb\r\n", b"--a--\r\n"
    ),
    "nested parts": repeated(b"", b"Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n"),
    "boundaries": repeated(b"Content-Type: multipart/mixed; boundary=a\r\n\r\n", b"--a\r\n"),
    "base64": repeated(b"Content-Transfer-Encoding: base64\r\n\r\n", b"YWFh" * 19 + b"\r\n"),
    "broken base64": repeated(b"Content-Transfer-Encoding: base64\r\n\r\n", b"Y=*\r\n"),
    "quoted-printable": repeated(b"Content-Transfer-Encoding: quoted-printable\r\n\r\n", b"=41=\r\n"),
    "utf-7": repeated(b"Content-Type: text/plain; charset=utf-7\r\n\r\n", b"+AGE-\r\n"),
    "octets in a text": repeated(b"Content-Type: text/plain; charset=iso-2022-jp\r\n\r\n", b"\x1b$B\xff\r\n"),
}
"""Messages without From and To, which are put in front."""

HEAD = b"From: Ada <ada@harbor.example>\r\nMessage-ID: <%b@quay.example>\r\n"


def message(shape: bytes) -> bytes:
    return HEAD % uuid4().hex.encode() + shape


def html_message(shape: str, size: int) -> bytes:
    lines = html(shape, size).replace("\n", "\r\n").encode()
    return message(
        b"Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" + lines
    )


def base64_lines(size: int) -> bytes:
    return repeated(b'"', b"YWFh" * 19 + b"\\n", b'"')(size)


ATTACHMENTS: dict[str, Shape] = {
    "base64": repeated(b'"', b"YWFh", b'"'),
    "base64 in lines": base64_lines,
    "escaped base64": repeated(b'"', b"YWF\\/", b'"'),
    "octets": repeated(b'{"type":"Buffer","data":[', b"123,", b"0]}"),
}
"""Contents of attachments, as JSON."""


def messages() -> Iterator[tuple[str, str]]:
    """Yield the names of all messages: kind and shape."""
    yield from (("plain", name) for name in MESSAGES)
    yield from (("html", name) for name in HTML)


def message_of(kind: str, shape: str, size: int) -> bytes:
    return message(MESSAGES[shape](size - KIB)) if kind == "plain" else html_message(shape, size - KIB)


def value_of(kind: str, shape: str, size: int) -> bytes:
    """Return the JSON of one of the kinds: `value`, `html`, `attachment`."""
    if kind == "html":
        return json.dumps(html(shape, size)).encode()
    if kind == "attachment":
        return b'[{"filename":"a.txt","content":%b}]' % ATTACHMENTS[shape](size)
    return VALUES[shape](size)


def with_field(base: Mapping[str, Any], name: str, value: bytes) -> bytes:
    rest = json.dumps({key: member for key, member in base.items() if key != name}).encode()
    return b"%b%b%b:%b}" % (rest[:-1], b"," if len(rest) > 2 else b"", json.dumps(name).encode(), value)


class Sender:
    """One connection at a time, in another process."""

    def __init__(self, pool: ProcessPoolExecutor, port: int, token: str | None) -> None:
        self._pool = pool
        self._at = port, token

    async def _there(self, work: Callable[..., int], *args: Any) -> int:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *args)

    async def ask(self, method: str, path: str, body: bytes = b"") -> int:
        """Return the status of the answer."""
        return await self._there(_ask, *self._at, method, path, body)

    async def ask_with(
        self,
        method: str,
        path: str,
        base: Mapping[str, Any],
        name: str,
        value: tuple[str, str, int],
        many: bool,
    ) -> int:
        """Return the status of the answer to a body that is made there: `base` with one field of a shape, or
        an array with it."""
        return await self._there(_ask_with, *self._at, method, path, base, name, value, many)

    async def submit(self, port: int, to: str, spec: tuple[str, str, int]) -> int:
        """Return the code of the answer to a message by SMTP, with a login where there is a token."""
        return await self._there(_submit, port, self._at[1], to, spec)


@contextmanager
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


_kept: dict[tuple[int, str | None], socket.socket] = {}


def _ask_with(
    port: int,
    token: str | None,
    method: str,
    path: str,
    base: Mapping[str, Any],
    name: str,
    value: tuple[str, str, int],
    many: bool,
) -> int:
    body = with_field(base, name, value_of(*value))
    return _ask(port, token, method, path, b"[%b]" % body if many else body)


def _ask(port: int, token: str | None, method: str, path: str, body: bytes) -> int:
    link = _kept.get((port, token)) or socket.create_connection(("127.0.0.1", port), PATIENCE)
    _kept[port, token] = link
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    link.sendall(f"{head}\r\n".encode() + body)
    answer = b""
    while b"\r\n\r\n" not in answer:
        more = link.recv(64 * KIB)
        assert more, (method, path[:100], answer)
        answer += more
    start, _, begun = answer.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in start.split(b"\r\n")[1:])
    left = int(fields.get(b"content-length", b"0")) - len(begun)
    while left > 0:
        left -= len(link.recv(min(left, MIB)))
    if fields.get(b"connection") == b"close":
        _kept.pop((port, token)).close()
    return int(start[9:12])


def _submit(port: int, token: str | None, to: str, spec: tuple[str, str, int]) -> int:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as link, link.makefile("rb") as lines:

        def heard() -> int:
            while (line := lines.readline())[3:4] == b"-":
                pass
            return int(line[:3])

        def say(line: str) -> int:
            link.sendall(f"{line}\r\n".encode())
            return heard()

        assert heard() == 220
        say("EHLO quay.example")
        if token:
            assert say("AUTH PLAIN " + base64.b64encode(f"\0resend\0{token}".encode()).decode()) == 235
        assert say("MAIL FROM:<ada@harbor.example>") == 250
        assert say(f"RCPT TO:<{to}>") == 250
        assert say("DATA") == 354
        raw = message_of(*spec).replace(b"\r\n.", b"\r\n..")
        link.sendall(raw if raw.endswith(b"\r\n") else raw + b"\r\n")
        return say(".")
