"""Large JSON bodies in pieces: how much they hold is known before it is built, and no step takes long.

A body of 50 MB is mostly a few long strings (html, base64) and, from some clients, long arrays of octets.
Both are cut out: a string is decoded in pieces that are joined, an array of octets becomes `bytes`. What is
left, the skeleton, has a bounded number of values and is decoded by the usual decoder; marks in it stand for
what was cut out. The pieces are short, so that a thread that does this lets others run in between.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any, Final

import msgspec

PIECE: Final = 256 * 1024
LONG: Final = 64 * 1024
"""Octets of an array of octets that is cut out."""
LARGE_SKELETON: Final = 4 * 1024 * 1024
"""With so many octets of skeleton, strings are cut out that would have been short enough before."""
MOST_ARRAYS: Final = 1000
"""Arrays that are looked at for octets."""
MOST_VALUES: Final = 500_000
"""Names, strings, numbers, literals, arrays and objects together."""

_BLANKS = re.compile(rb"[ \t\n\r]++")
_IN_STRING = re.compile(
    rb"(?>(?:[^\"\\]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4})*)"
)
_SHORT, _SHORTER = [
    re.compile(rb'(?>(?:[^"]*+"(?>(?:[^"\\]{1,64}+|\\.){0,%d})")+)' % most) for most in (64, 8)
]
"""Text between strings and strings that are short: up to 4096 octets, or 512, and few escapes."""
_STRING = re.compile(rb'"(?>(?:[^"\\]++|\\.)*)"')
_OCTETS = re.compile(rb"[0-9, \t\n\r]*+")
_UTF8_CONTINUED = range(0x80, 0xC0)

_decode = msgspec.json.Decoder().decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_numbers = msgspec.json.Decoder(list[int]).decode
_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


class NotJson(Exception):  # noqa: N818
    """The body is no JSON."""


class TooMuch(Exception):  # noqa: N818
    """The body holds too many values."""


def decode(data: bytes | bytearray) -> Any:
    """Return the parsed body; raise NotJson, TooMuch, or RecursionError for what is nested too deep.

    Long arrays of whole numbers from 0 to 255 come back as `bytes`.
    """
    reader = _JsonReader(data)
    try:
        body = _decode(reader.skeleton())
    except (msgspec.DecodeError, UnicodeError, ValueError):
        raise NotJson from None
    return reader.filled(body)


def encoded(body: Any) -> Iterator[bytes]:
    """Yield the pieces of a large body as JSON with sorted keys: together what the usual encoder writes."""
    salt = secrets.token_hex(16)
    cut: list[str] = []
    skeleton = _encode_sorted(_without_long(body, salt, cut))
    at = 0
    for number, text in enumerate(cut):
        mark = f'"{salt}{number:06d}"'.encode()
        begin = skeleton.index(mark, at)
        yield skeleton[at:begin]
        yield b'"'
        for start in range(0, len(text), LONG):
            yield _encode(text[start : start + LONG])[1:-1]
        yield b'"'
        at = begin + len(mark)
    yield skeleton[at:]


def _without_long(value: Any, salt: str, cut: list[str]) -> Any:
    """Return a copy with marks for long strings, which are numbered in the order in which they
    are written."""
    if type(value) is str and len(value) > LONG:
        cut.append(value)
        return f"{salt}{len(cut) - 1:06d}"
    if type(value) is list:
        return [_without_long(member, salt, cut) for member in value]
    if type(value) is dict:
        return {name: _without_long(value[name], salt, cut) for name in sorted(value)}
    return value


class _JsonReader:
    """One pass over the body."""

    def __init__(self, data: bytes | bytearray) -> None:
        self._data = data
        self._out: list[bytes] = []
        self._size = 0
        self._values = 0
        self._arrays = 0
        self._salt = secrets.token_hex(16)
        self._cut: dict[str, str | bytes] = {}

    # Cutting -----------------------------------------------------------------------------------------

    def skeleton(self) -> bytes:
        """Return the body without its long strings and arrays."""
        data, at, size = self._data, 0, len(self._data)
        while at < size:
            quote = data.find(b'"', at)
            begin = size if quote < 0 else quote
            if begin - at > LONG or quote < 0:
                self._outside(at, begin)
                at = begin
                continue
            end = self._short_strings(at)
            if end == at:
                self._outside(at, quote)
                end = self._string(quote)
            at = end
        return b"".join(self._out)

    def _short_strings(self, begin: int) -> int:
        """Take short strings and what stands between them, as many as there are; where the last one ends."""
        data = self._data
        short = _SHORT if self._size < LARGE_SKELETON else _SHORTER
        found = short.match(data, begin, begin + PIECE)
        last = data.rfind(b'"', begin, found.end()) if found else -1
        if last < 0:
            return begin
        taken = bytes(data[begin : last + 1])
        self._count(_STRING.sub(b'"', taken))
        self._keep(taken)
        return last + 1

    def _string(self, begin: int) -> int:
        """Take the string whose quote is at `begin`; where it ends."""
        data = self._data
        pieces: list[str] = []
        at = begin + 1
        while True:
            end = self._piece_end(at)
            pieces.append(self._text(at, end))
            at = end
            if data[at : at + 1] == b'"':
                self._keep(self._mark("".join(pieces)))
                return at + 1

    def _piece_end(self, index: int) -> int:
        """Return where the string may be cut, or its last quote."""
        data = self._data
        stop = min(index + PIECE, len(data))
        quote = data.find(b'"', index, stop)
        if quote >= 0 and data.find(b"\\", index, quote) < 0:
            return quote
        if quote < 0 and data.find(b"\\", index, stop) < 0:
            end = stop
        else:
            found = _IN_STRING.match(data, index, stop)
            end = found.end() if found else index
        if end < len(data) and data[end] in _UTF8_CONTINUED:
            end = max([place for place in range(end - 3, end) if data[place] >= 0xC0], default=end)
        if end <= index and data[index : index + 1] != b'"':
            raise NotJson
        return end

    def _text(self, index: int, end: int) -> str:
        try:
            return _decode_text(b'"%b"' % bytes(self._data[index:end]))
        except (msgspec.DecodeError, UnicodeError, ValueError):
            raise NotJson from None

    def _outside(self, begin: int, end: int) -> None:
        """Take what stands between two strings."""
        data = self._data
        while begin < end:
            is_wanted = end - begin > LONG and self._arrays < MOST_ARRAYS
            found = data.find(b"[", begin, end) if is_wanted else -1
            if found < 0:
                self._tokens(begin, end)
                return
            self._tokens(begin, found)
            begin = self._array(found, end)

    def _array(self, begin: int, end: int) -> int:
        """Take the array at `begin` if it is a long one of octets, else its bracket; where it ends."""
        self._arrays += 1
        data, at = self._data, begin + 1
        numbers = bytearray()
        while True:
            found = _OCTETS.match(data, at, min(at + PIECE, end))
            stop = found.end() if found else at
            ends = data[stop : stop + 1] == b"]"
            if stop == at or (not ends and stop < min(at + PIECE, end)):
                break
            # A piece ends behind a comma, or with the array.
            cut = stop if ends else data.rfind(b",", at, stop)
            if cut < at:
                break
            try:
                octets = bytes(_decode_numbers(b"[%b]" % bytes(data[at:cut])))
            except (msgspec.DecodeError, ValueError):
                break
            if not octets:
                break
            numbers += octets
            if ends:
                if stop - begin <= LONG:
                    break
                self._keep(self._mark(bytes(numbers)))
                return stop + 1
            at = cut + 1
        self._tokens(begin, begin + 1)
        return begin + 1

    def _tokens(self, begin: int, end: int) -> None:
        """Take numbers, literals, brackets and commas; blanks between them are shortened."""
        for at in range(begin, end, PIECE):
            piece = bytes(self._data[at : min(at + PIECE, end)])
            if len(piece) > LONG:
                piece = _BLANKS.sub(b" ", piece)
            self._count(piece)
            self._keep(piece)

    def _count(self, outside: bytes) -> None:
        # Each value has a comma behind it or is the last of its container, each name has a colon.
        self._values += sum([outside.count(mark) for mark in (b",", b":", b"[", b"{")])
        if self._values > MOST_VALUES:
            raise TooMuch

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        self._out.append(piece)

    def _mark(self, content: str | bytes) -> bytes:
        """Return the mark that stands for `content` in the skeleton; nobody else can write it."""
        name = f"{self._salt}{len(self._cut)}"
        self._cut[name] = content
        return b'"%b"' % name.encode()

    # Filling in --------------------------------------------------------------------------------------

    def filled(self, body: Any) -> Any:
        """Return the body with the parts that were cut out of it."""
        if not self._cut:
            return body
        whole = [body]
        waiting: list[Any] = [whole]
        while waiting:
            value = waiting.pop()
            if type(value) is dict:
                self._fill_names(value)
            for key, member in value.items() if type(value) is dict else enumerate(value):
                if type(member) is str:
                    value[key] = self._cut.get(member, member)
                elif type(member) in (dict, list):
                    waiting.append(member)
        return whole[0]

    def _fill_names(self, value: dict[str, Any]) -> None:
        if self._cut.keys().isdisjoint(value):
            return
        members = list(value.items())
        value.clear()
        for name, member in members:
            found = self._cut.get(name, name)
            if type(found) is not str:
                raise NotJson
            value[found] = member
