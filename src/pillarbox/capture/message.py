"""Reading a kept message back: its headers, its bodies, its other parts.

The messages are of our own composer, but what is attached may be anything: nothing here raises for what
a message holds, recursion and the number of parts are bounded, and an attached message stays closed.
The raw bytes are never copied but for the part that is decoded.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message as Head
from email.parser import BytesHeaderParser
from email.policy import compat32
from itertools import islice
from typing import Any, NamedTuple

from pillarbox.mail import encoded_words

DEEPEST = 8
MOST_PARTS = 200
LONGEST_HEAD = 512 * 1024

PICTURES = frozenset(
    f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "bmp", "avif", "x-icon", "vnd.microsoft.icon")
)
"""Types that a browser only ever draws; SVG is not one of them."""

BODIES = frozenset({"text/html", "text/plain"})

_LINE_REST = re.compile(rb"(--)?[ \t]*(?:\r?\n|\Z)")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_HEADERS = BytesHeaderParser(policy=compat32)
_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}")


class Header(NamedTuple):
    name: str
    value: str


class Part(NamedTuple):
    """A part that is not a body of the message. `number` is its place among all leaves."""

    number: int
    filename: str
    content_type: str
    cid: str | None
    inline: bool
    size: int

    @property
    def is_picture(self) -> bool:
        return self.content_type in PICTURES


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it is shown."""

    headers: list[Header]
    html: str | None
    text: str | None
    parts: list[Part]

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((h.value for h in self.headers if h.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A part without parts: its header fields, and where its encoded content lies."""

    head: Head
    start: int
    end: int


def read(raw: bytes) -> Message:
    """The message in `raw`."""
    bodies: dict[str, str] = {}
    parts = []
    for number, (leaf, body) in enumerate(_sorted(raw)):
        if body is not None:
            bodies[body] = _text(raw, leaf)
        else:
            parts.append(_part(raw, number, leaf))
    headers = _headers(_head(raw, 0, len(raw))[0])
    return Message(headers, bodies.get("text/html"), bodies.get("text/plain"), parts)


def part(raw: bytes, number: int) -> tuple[Part, bytes] | None:
    """One part that is not a body, with its bytes."""
    for place, (leaf, body) in enumerate(_sorted(raw)):
        if place == number:
            return None if body is not None else (_part(raw, number, leaf), _content(raw, leaf))
    return None


def _sorted(raw: bytes) -> Iterator[tuple[_Leaf, str | None]]:
    """Each leaf, and the type of the body that it is."""
    seen: set[str] = set()
    for leaf in islice(_walk(raw, 0, len(raw), 0), MOST_PARTS):
        kind = leaf.head.get_content_type()
        if kind in BODIES and kind not in seen and not _is_file(leaf.head):
            seen.add(kind)
            yield leaf, kind
        else:
            yield leaf, None


def _walk(raw: bytes, start: int, end: int, depth: int) -> Iterator[_Leaf]:
    head, content = _head(raw, start, end)
    boundary = _boundary(head) if head.get_content_maintype() == "multipart" else None
    if not boundary or depth == DEEPEST:
        yield _Leaf(head, content, end)
        return
    for first, last in _pieces(raw, content, end, boundary):
        yield from _walk(raw, first, last, depth + 1)


def _head(raw: bytes, start: int, end: int) -> tuple[Head, int]:
    """The header fields of the part at `start` and where its content begins."""
    if raw.startswith((b"\r\n", b"\n"), start, end):
        return Head(), min(end, start + (2 if raw[start : start + 1] == b"\r" else 1))
    found = _HEAD_END.search(raw, start, min(end, start + LONGEST_HEAD))
    stop, content = (found.start(), found.end()) if found else (min(end, start + LONGEST_HEAD), end)
    return _HEADERS.parsebytes(raw[start:stop] + b"\r\n"), content


def _pieces(raw: bytes, start: int, end: int, boundary: str) -> Iterator[tuple[int, int]]:
    """Where the parts between the boundary lines lie (RFC 2046, 5.1.1)."""
    mark = b"--" + boundary.encode("utf-8", "surrogateescape")
    opened: int | None = None
    at = start
    while (at := raw.find(mark, at, end)) >= 0:
        line, at = at, at + len(mark)
        rest = _LINE_REST.match(raw, at, end)
        if rest is None or (line > start and raw[line - 1 : line] != b"\n"):
            continue
        if opened is not None:
            yield opened, max(opened, _before_line_end(raw, line))
        if rest[1]:
            return
        opened = at = rest.end()
    if opened is not None:
        yield opened, end


def _before_line_end(raw: bytes, at: int) -> int:
    """Where the line before `at` ends; its line end belongs to the boundary."""
    return at - 2 if raw[at - 2 : at] == b"\r\n" else at - 1


def _headers(head: Head) -> list[Header]:
    return [Header(name, _shown(str(value))) for name, value in head.raw_items()]


def _shown(value: str) -> str:
    """A header field on one line, its encoded words decoded."""
    text = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return encoded_words.decode(re.sub(r"\r?\n(?=[ \t])", "", text).replace("\r", "").replace("\n", " "))


def _is_file(head: Head) -> bool:
    return head.get_content_disposition() == "attachment" or _filename(head) != ""


def _part(raw: bytes, number: int, leaf: _Leaf) -> Part:
    kind = leaf.head.get_content_type()
    cid = str(leaf.head.get("content-id", "")).strip()
    return Part(
        number,
        _filename(leaf.head) or f"part-{number}",
        kind if _TYPE.fullmatch(kind) else "application/octet-stream",
        _shown(cid.removeprefix("<").removesuffix(">")) or None,
        leaf.head.get_content_disposition() == "inline",
        len(_content(raw, leaf)),
    )


def _filename(head: Head) -> str:
    """The name in the form that lost nothing, if the part has a name (RFC 2231)."""
    named = _parameters(head, "content-disposition", "filename") or _parameters(head, "content-type", "name")
    best = next((value for value in named if isinstance(value, tuple)), named[0] if named else "")
    return _shown(_plain(best))


def _parameters(head: Head, header: str, name: str) -> list[Any]:
    """All values of a parameter; none where the header makes no sense."""
    try:
        return [value for key, value in head.get_params([], header) if key.lower() == name]
    except Exception:
        # The standard parser raises many kinds of errors for broken RFC 2231 parameters.
        return []


def _plain(value: Any) -> str:
    """A parameter's text; one of RFC 2231 comes as charset, language and octets."""
    if not isinstance(value, tuple):
        return str(value)
    codec = encoded_words.CHARSETS.get(str(value[0] or "").lower(), "utf-8")
    return str(value[2]).encode("latin-1", "replace").decode(codec, "replace")


def _boundary(head: Head) -> str | None:
    values = _parameters(head, "content-type", "boundary")
    return values[0] if values and isinstance(values[0], str) else None


def _content(raw: bytes, leaf: _Leaf) -> bytes:
    """The bytes of a part, decoded; as they stand where the encoding is broken or unknown."""
    encoded = raw[leaf.start : leaf.end]
    encoding = str(leaf.head.get("content-transfer-encoding", "")).strip().lower()
    if encoding == "base64":
        try:
            return binascii.a2b_base64(encoded)
        except binascii.Error:
            return encoded
    return binascii.a2b_qp(encoded) if encoding == "quoted-printable" else encoded


def _text(raw: bytes, leaf: _Leaf) -> str:
    octets = _content(raw, leaf)
    charset = next(iter(_parameters(leaf.head, "content-type", "charset")), "")
    codec = encoded_words.CHARSETS.get(_plain(charset).lower(), "utf-8")
    return octets.decode(codec, "replace").replace("\r\n", "\n")
