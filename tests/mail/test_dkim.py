"""DKIM-01, DKIM-02, TRAP-08, TRAP-11: what we sign, two independent verifiers accept."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache

import dkim as dkimpy  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.dkim_verifier import DkimError, verify
from pillarbox.mail.authentication import dkim

AT = datetime(2026, 10, 3, 10, 0, 0, 900000, tzinfo=UTC)
HEADERS = (
    b"From: Ann <ann@harbor.example>\r\nTo: ben@quay.example\r\nSubject: Berth 12\r\n"
    b"Date: Sat, 03 Oct 2026 10:00:00 +0000\r\nMessage-ID: <1@harbor.example>\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nList-Unsubscribe: <https://harbor.example/u/1>\r\n"
)
PLAIN = HEADERS + b"\r\nReady.\r\n"


@cache
def pair() -> dkim.KeyPair:
    return dkim.generate_rsa_key()


def txt(name: str) -> str | None:
    known = name == "pillarbox._domainkey.harbor.example"
    return f"p={pair().public}" if known else None


def signed(message: bytes) -> bytes:
    """The signed message as it travels: SMTP ends the last line where the author did not."""
    key = dkim.load_key(pair().private)
    header = dkim.sign(message, domain="harbor.example", selector="pillarbox", key=key, instant=AT)
    return header + message + (b"" if message.endswith(b"\r\n") else b"\r\n")


def dkimpy_accepts(message: bytes) -> bool:
    def record(name: bytes, timeout: int = 5) -> bytes | None:
        found = txt(name.decode().rstrip("."))
        return None if found is None else found.encode()

    return bool(dkimpy.verify(message, dnsfunc=record))


def assert_both_accept(message: bytes) -> None:
    verify(message, txt)
    assert dkimpy_accepts(message)


def assert_both_refuse(message: bytes) -> None:
    with pytest.raises(DkimError):
        verify(message, txt)
    assert not dkimpy_accepts(message)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\r\n",
        b"\r\n\r\n\r\n",
        b" \t \r\n\r\n",
        b"one line without an end",
        b"trailing space \t",
        b"text\r\n\r\n\r\n\r\n",
        b"text \r\n \t\r\n  \r\n",
        b"\r\n\r\ntext after blank lines\r\n",
        b"tabs\tand   runs \t of\t\tspace\r\n",
        "Grüße aus dem Hafen – \u2603\r\n".encode(),
        bytes(range(0x80, 0x100)) + b"\r\n",
        b".\r\n..\r\n",
        b"x" * 998 + b"\r\n",
        (b"a line of text\r\n" * 70_000),
    ],
)
def test_bodies_of_every_shape_verify(body: bytes) -> None:
    """DKIM-01."""
    assert_both_accept(signed(HEADERS + b"\r\n" + body))


@pytest.mark.parametrize(
    "field",
    [
        b"Subject: a\r\n folded\r\n\tsubject\r\n",
        b"Subject:   spaces   before and after \t \r\n",
        b"Subject:no space\r\n",
        b"Subject:\r\n",
        b"Subject: first line ends with a space \r\n \r\n second is blank\r\n",
        b"SUBJECT: loud\r\n",
        b"Subject: colons: in: the: value\r\n",
        b"Subject: " + b"w" * 900 + b"\r\n " + b"v" * 900 + b"\r\n",
        "Subject: Größe ohne Kodierung\r\n".encode(),
        b"References: " + b"\r\n ".join(b"<%d@harbor.example>" % i for i in range(80)) + b"\r\n",
        b"List-Help: <https://harbor.example/help>\r\nList-Id: Notes <notes.harbor.example>\r\n",
        b"X-Twice: 1\r\nX-Twice: 2\r\nTo: a@quay.example\r\nTo: b@quay.example\r\n",
    ],
)
def test_headers_of_every_shape_verify(field: bytes) -> None:
    """DKIM-01."""
    message = b"From: ann@harbor.example\r\n" + field + b"Date: Sat, 03 Oct 2026 10:00:00 +0000\r\n\r\nhi\r\n"
    assert_both_accept(signed(message))


def test_a_message_without_a_body_separator_verifies() -> None:
    header = signed(HEADERS)[: -len(HEADERS)]
    assert_both_accept(header + HEADERS + b"\r\n")


@pytest.mark.parametrize(
    "extra",
    [
        b"From: Mallory <m@evil.example>\r\n",
        b"Subject: Act now\r\n",
        b"List-Unsubscribe: <https://evil.example/>\r\n",
        b"Reply-To: m@evil.example\r\n",
        b"Cc: everyone@evil.example\r\n",
        b"Content-Transfer-Encoding: base64\r\n",
        b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n",
        b"In-Reply-To: <2@evil.example>\r\n",
    ],
)
@pytest.mark.parametrize("place", ["top", "bottom"])
def test_a_header_added_after_signing_breaks_the_signature(extra: bytes, place: str) -> None:
    """DKIM-02: every listed header is named once more than it is present."""
    whole = signed(PLAIN)
    tampered = extra + whole if place == "top" else whole.replace(b"\r\n\r\n", b"\r\n" + extra + b"\r\n", 1)
    assert_both_accept(whole)
    assert_both_refuse(tampered)


def test_a_further_list_header_is_oversigned_too() -> None:
    """DKIM-02."""
    field = b"List-Archive: <https://harbor.example/a>\r\n"
    whole = signed(field + PLAIN)
    assert_both_accept(whole)
    assert_both_refuse(field + whole)


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"Ready.", b"Steady."), (b"Berth 12", b"Berth 13"), (b"t=1", b"t=2"), (b"d=harbor", b"d=harbour")],
)
def test_a_change_breaks_the_signature(before: bytes, after: bytes) -> None:
    whole = signed(PLAIN)
    assert before in whole
    assert_both_refuse(whole.replace(before, after, 1))


def test_relays_may_refold_and_pad_without_harm() -> None:
    whole = signed(PLAIN)
    assert_both_accept(whole.replace(b"Subject: Berth 12", b"SUBJECT:  Berth\r\n\t12 ") + b"\r\n\r\n")


def test_every_listed_header_is_named_once_more_than_present() -> None:
    """DKIM-02, and the tags that DKIM-01 asks for."""
    tags = verify(signed(b"To: c@quay.example\r\n" + PLAIN), txt)
    names = re.sub(r"\s", "", tags["h"]).split(":")
    present = {"from": 1, "to": 2, "subject": 1, "date": 1, "message-id": 1, "mime-version": 1}
    present |= {"content-type": 1, "list-unsubscribe": 1}
    assert {name: names.count(name) for name in names} == {
        name.decode(): present.get(name.decode(), 0) + 1 for name in dkim.SIGNED
    }
    assert tags["a"] == "rsa-sha256"
    assert tags["t"] == str(int(AT.timestamp()))
    assert not {"l", "x"} & tags.keys()


def test_the_header_stays_within_78_columns() -> None:
    """Domains and selectors that are longer than a line are the exception."""
    for domain in ("a.example", "a-rather-long-name-for-a-host.of-a-harbor.example"):
        key = dkim.load_key(pair().private)
        header = dkim.sign(PLAIN, domain=domain, selector="s", key=key, instant=0)
        lines = header.decode("ascii").split("\r\n")
        assert lines.pop() == ""
        assert max(len(line) for line in lines) <= 78
        assert all(line[0] == "\t" for line in lines[1:])


@pytest.mark.parametrize(
    "domain", ["", "harbor example", "harbor.example; x=1", "a\r\nb", "hafenstraße.example"]
)
def test_a_domain_that_is_no_host_name_is_refused(domain: str) -> None:
    with pytest.raises(ValueError, match="host names"):
        dkim.sign(PLAIN, domain=domain, selector="s", key=dkim.load_key(pair().private), instant=0)


def test_a_message_without_from_is_refused() -> None:
    for message in (b"Subject: x\r\n\r\nFrom: in the body\r\n", b"\r\nFrom: a@b.example\r\n", b""):
        with pytest.raises(ValueError, match="From"):
            signed(message)


def test_only_rsa_keys_load() -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    other = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for der in (other, b"junk"):
        with pytest.raises(ValueError):
            dkim.load_key(der)


def test_new_keys_are_rsa_2048_and_differ() -> None:
    """DKIM-01."""
    another = dkim.generate_rsa_key()
    assert dkim.load_key(another.private).key_size == 2048
    assert another.public != pair().public
    assert re.fullmatch(r"p=[A-Za-z0-9+/]{390,394}={0,2}", f"p={another.public}")


@pytest.mark.parametrize(
    ("raw", "relaxed"),
    [
        (b"A: X\r\n", b"a:X\r\n"),
        (b"B : Y\t\r\n\tZ  \r\n", b"b:Y Z\r\n"),
        (b"C:", b"c:\r\n"),
    ],
)
def test_header_examples_of_the_rfc(raw: bytes, relaxed: bytes) -> None:
    """RFC 6376, 3.4.5."""
    assert dkim.relaxed_header(raw) == relaxed


@pytest.mark.parametrize(
    ("raw", "relaxed"),
    [
        (b" C \r\nD \t E\r\n\r\n\r\n", b" C\r\nD E\r\n"),
        (b"", b""),
        (b"\r\n", b""),
        (b"a\n\r\n\r\n", b"a\n\r\n"),
        (b"a\r\n\r\r\n", b"a\r\n\r\r\n"),
        (b"a\r\n\n", b"a\r\n\n\r\n"),
    ],
)
def test_body_examples_of_the_rfc(raw: bytes, relaxed: bytes) -> None:
    """RFC 6376, 3.4.5; lone CR and LF are content."""
    assert dkim.relaxed_body(raw) == relaxed


def test_blank_lines_and_spaces_by_the_million_cost_little() -> None:
    """Memory and time stay linear: 20 MB of blank lines, then of spaces."""
    assert dkim.relaxed_body(b"\r\n" * 10_000_000) == b""
    assert dkim.relaxed_body(b" " * 20_000_000 + b"x") == b" x\r\n"


FILLER = st.sampled_from(
    [b" ", b"\t", b"  ", b"\r\n", b"\r\n ", b"\r\n\t", b"\r\n\r\n", b".", b"a", b"=", b"\xc3\xa9"]
)
CHUNK = st.one_of(FILLER, st.binary(min_size=1, max_size=12).map(lambda b: re.sub(rb"[\r\n\0]", b"", b)))
BODY = st.lists(CHUNK, max_size=40).map(b"".join)
VALUE = st.lists(
    st.sampled_from(
        [b"word", b" ", b"\t", b"\r\n ", b"\r\n\t", b":", b";", b"\xc3\xa9", b"<a@b.example>", b'"q"']
    ),
    max_size=12,
).map(lambda parts: re.sub(rb"(?:\r\n[ \t]+)+", b"\r\n ", b"".join([b" v", *parts, b"e"])))
NAME = st.sampled_from(
    [
        b"To",
        b"CC",
        b"Subject",
        b"X-Note",
        b"reply-to",
        b"List-Id",
        b"List-Owner",
        b"References",
        b"Content-Type",
    ]
)
FIELDS = st.lists(st.tuples(NAME, VALUE), max_size=8)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    fields = [(b"From", b" ann@harbor.example"), *draw(FIELDS)]
    head = b"".join(name + b":" + value + b"\r\n" for name, value in draw(st.permutations(fields)))
    return head + b"\r\n" + draw(BODY)


@given(messages())
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_message_verifies_twice(message: bytes) -> None:
    """DKIM-01: dkimpy and our own strict verifier agree on 500 messages."""
    assert_both_accept(signed(message))


@pytest.mark.slow
@given(messages())
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_ten_thousand_messages_verify_twice(message: bytes) -> None:
    """DKIM-01."""
    assert_both_accept(signed(message))
