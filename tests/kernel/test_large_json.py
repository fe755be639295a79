"""Large JSON bodies read in pieces give what the usual decoder gives, or the same refusal."""

from __future__ import annotations

import hashlib
import json
import random
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pillarbox.kernel.http.idempotency import fingerprint
from pillarbox.kernel.wire import large_json
from pillarbox.kernel.wire.large_json import NotJson, TooMuch, decode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-300, 300) | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=20,
)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every string and array is long, and every piece short."""
    monkeypatch.setattr(large_json, "PIECE", 16)
    monkeypatch.setattr(large_json, "LONG", 4)
    monkeypatch.setattr(large_json, "LARGE_SKELETON", 0)


def usual(data: bytes) -> object:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, ValueError):
        return NotJson


def in_pieces(data: bytes) -> object:
    try:
        return with_lists(decode(data))
    except NotJson:
        return NotJson


def with_lists(value: object) -> object:
    """The value with arrays of octets as lists."""
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, list):
        return [with_lists(member) for member in value]
    if isinstance(value, dict):
        return {name: with_lists(member) for name, member in value.items()}
    return value


@pytest.mark.usefixtures("small_pieces")
def test_pieces_of_a_few_octets_give_the_same_value() -> None:
    @settings(max_examples=150, deadline=None)
    @given(JSON, st.booleans(), st.sampled_from([None, 1]))
    def same(value: object, ascii_only: bool, indent: int | None) -> None:
        data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
        assert in_pieces(data) == usual(data)

    same()


@pytest.mark.usefixtures("small_pieces")
def test_what_is_no_json_stays_no_json() -> None:
    whole = json.dumps({"a": ["é\n😀" * 5, [1, 2, 3] * 5, [7, 256, -1, 1.5], {"b" * 20: None}]}).encode()
    chance = random.Random(7)
    soup = [
        b'"',
        b"\\",
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b":",
        b"1",
        b"\xc3",
        b"\xff",
        b"\\ud83d",
        b"\\u12",
        b" ",
    ]
    for _ in range(3000):
        at, end = sorted(chance.sample(range(len(whole) + 1), 2))
        data = whole[:at] + b"".join(chance.choices(soup, k=chance.randrange(3))) + whole[end:]
        assert in_pieces(data) == usual(data), data


@pytest.mark.parametrize(
    "broken", [b"[,1]", b"[1,]", b"[1,,2]", b"[1 2]", b"[01,2]", b"{[1,2,3,4,5,6]:1}", b'"\\ud83d"', b'"\\x"']
)
@pytest.mark.usefixtures("small_pieces")
def test_arrays_and_escapes_that_are_cut_hide_no_mistake(broken: bytes) -> None:
    assert in_pieces(broken) is NotJson
    assert in_pieces(b'{"a":%b}' % broken) is NotJson


def test_a_long_array_of_octets_comes_as_bytes() -> None:
    content = random.Random(1).randbytes(300_000)
    body = decode(json.dumps({"content": {"type": "Buffer", "data": list(content)}, "n": [1, 2]}).encode())
    assert body == {"content": {"type": "Buffer", "data": content}, "n": [1, 2]}


MASSES = {
    "numbers": b'{"z":[%b0]}' % (b"-6," * 1_000_000),
    "literals": b'{"z":[%b0]}' % (b"null," * 1_000_000),
    "strings": b'{"z":[%b0]}' % (b'"a",' * 1_000_000),
    "objects": b"[%b0]" % (b'{"a":1},' * 500_000),
    "names": b"{%b}" % b",".join([b'"%x":0' % n for n in range(300_000)]),
}


@pytest.mark.parametrize("data", MASSES.values(), ids=MASSES.keys())
def test_masses_of_values_of_every_kind_are_refused(data: bytes) -> None:
    started = time.thread_time()
    with pytest.raises(TooMuch):
        decode(data)
    assert time.thread_time() - started < 1.0


def test_a_fingerprint_is_the_same_in_pieces() -> None:
    body = {"b": "x\n\u00e9" * 40_000, "a": ["\U0001f600" * 70_000, {"z": 1, "\u00e9": None}], "c": "short"}
    whole = hashlib.sha256(msgspec.json.encode(body, order="sorted") + b"\nsalt").digest()
    assert fingerprint(body, "salt") == fingerprint(body, "salt", is_large=True) == whole
