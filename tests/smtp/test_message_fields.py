"""What a submitted message becomes: the fields of a send request (emails.md section 10, content)."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.clock import START
from kit.submission import message_bytes
from pillarbox.emails.requests import parse
from pillarbox.kernel.wire.problems import Invalid, InvalidAttachment, InvalidField, MissingField
from pillarbox.mail.message.address import parse_mailbox
from pillarbox.mail.message.headers import LONGEST_VALUE
from pillarbox.mail.message.parse import parse as parse_message
from pillarbox.smtp import message_fields as letters

ADA = ("ada@quay.example",)


def fields(text: bytes, to: tuple[str, ...] = ADA) -> dict[str, Any]:
    return letters.fields(parse_message(text), [parse_mailbox(address) for address in to])


def test_the_envelope_decides_and_the_header_names_the_role() -> None:
    """Those also in To and Cc keep that role, others become bcc; header-only addresses get nothing."""
    text = message_bytes(
        to="Ada <ADA@Quay.example>, only@header.example, bo@quay.example", Cc="bo@quay.example, cy@x.example"
    )
    body = fields(text, ("cy@x.example", "ada@quay.example", "dee@x.example", "bo@quay.example"))
    assert body["to"] == ["Ada <ADA@Quay.example>", "bo@quay.example"]
    assert (body["cc"], body["bcc"]) == (["cy@x.example"], ["dee@x.example"])


@pytest.mark.parametrize("to", [None, "undisclosed-recipients:;", "list@header.example"])
def test_a_mail_to_blind_copies_alone(to: str | None) -> None:
    """MSG-09."""
    body = fields(message_bytes(to=to))
    assert (body["to"], body["cc"], body["bcc"]) == ([], [], ["ada@quay.example"])
    outgoing = parse.outgoing(body, START, is_letter=True)
    assert [found.role for found in outgoing.recipients()] == ["bcc"]


def test_the_bcc_header_is_dropped() -> None:
    body = fields(message_bytes(Bcc="secret@quay.example"))
    assert (body["to"], body["bcc"], body["headers"]) == (["ada@quay.example"], [], {})


def test_who_stands_twice_gets_one() -> None:
    body = fields(
        message_bytes(to="ada@quay.example, ADA@quay.example", Cc="Ada <ada@quay.example>"), (*ADA, *ADA)
    )
    assert (body["to"], body["cc"], body["bcc"]) == (["ada@quay.example"], [], [])


@pytest.mark.parametrize(
    ("header", "sender"),
    [
        ("a@harbor.example", "a@harbor.example"),
        ('"Doe, John" <j@harbor.example>', '"Doe, John" <j@harbor.example>'),
        ("=?utf-8?q?Doe=2C_J=C3=B6rg?= <j@harbor.example>", '"Doe, Jörg" <j@harbor.example>'),
        ("j@harbor.example (John)", "John <j@harbor.example>"),
        ("=?utf-8?b?5pel5pys?= <j@harbor.example>", "日本 <j@harbor.example>"),
    ],
)
def test_the_sender(header: str, sender: str) -> None:
    raw = b"From: " + header.encode() + b"\r\nTo: ada@quay.example\r\nSubject: x\r\n\r\nx\r\n"
    body = fields(raw)
    assert body["from"] == sender
    assert parse.outgoing(body, START, is_letter=True).sender.domain == "harbor.example"


def test_custom_headers_are_kept_and_ours_are_not() -> None:
    """emails.md 1.3."""
    kept = {"X-Berth": "12", "In-Reply-To": "<a@b.example>", "List-Unsubscribe": "<https://x.example/u>"}
    raw = b"".join(f"{name}: {value}\r\n".encode() for name, value in kept.items())
    raw += b"Received: from a by b; Mon, 5 Oct 2026 10:00:00 +0000\r\nDKIM-Signature: v=1\r\n"
    raw += b"Message-ID: <x@y>\r\n"
    raw += b"Date: Mon, 5 Oct 2026 10:00:00 +0000\r\nReturn-Path: <a@b.example>\r\nSender: s@x.example\r\n"
    raw += b"Resend-Idempotency-Key: k\r\nPillarbox-Idempotency-Key: k\r\nX-Empty:\r\n"
    body = fields(raw + message_bytes(Reply_To="handler@harbor.example"))
    assert body["headers"] == {**kept, "X-Pillarbox-Hops": "2"}
    assert fields(message_bytes())["headers"] == {}
    assert body["reply_to"] == ["handler@harbor.example"]


def test_folded_and_encoded_headers_are_read() -> None:
    raw = b"X-Long: one\r\n two\r\n\tthree\r\nX-Name: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n"
    assert fields(raw + message_bytes())["headers"] == {"X-Long": "one two three", "X-Name": "Grüße"}


def test_long_references_keep_the_first_and_the_newest() -> None:
    """A long thread is no reason to refuse a mail."""
    ids = [f"<{number:030}@thread.example>" for number in range(100)]
    kept = fields(message_bytes(References=" ".join(ids)))["headers"]["References"].split()
    assert kept[0] == ids[0]
    assert kept[1:] == ids[-len(kept[1:]) :]
    assert len(" ".join(kept)) <= LONGEST_VALUE < len(" ".join([*kept, ids[0]]))


def test_bodies_and_files() -> None:
    """First text/plain, first text/html, the other leaves attachments, with content ids."""
    raw = b"""From: a@harbor.example
To: ada@quay.example
Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=m

--m
Content-Type: multipart/related; boundary=r

--r
Content-Type: multipart/alternative; boundary=a

--a
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Gr=FC=DFe
--a
Content-Type: text/html; charset=utf-8

<img src="cid:logo@x">
--a--
--r
Content-Type: image/png; name=logo.png
Content-ID: <logo@x>
Content-Transfer-Encoding: base64

AAEC
--r--
--m
Content-Type: text/calendar; method=REQUEST; charset=utf-8
Content-Disposition: attachment; filename*=utf-8''b%C3%A9.ics

BEGIN:VCALENDAR
--m
Content-Type: message/rfc822

Subject: inside

old
--m--
""".replace(b"\n", b"\r\n")
    body = fields(raw)
    assert (body["subject"], body["text"]) == ("Grüße", "Grüße")
    assert body["html"] == '<img src="cid:logo@x">'
    logo, invitation, inside = body["attachments"]
    assert logo == {
        "filename": "logo.png", "content": b"\0\1\2", "content_type": "image/png", "content_id": "logo@x",
    }  # fmt: skip
    assert invitation["filename"] == "bé.ics"
    assert invitation["content_type"] == "text/calendar; charset=utf-8; method=REQUEST"
    assert invitation["content"] == b"BEGIN:VCALENDAR"
    assert (inside["content_type"], inside["filename"]) == ("message/rfc822", "inside.eml")
    outgoing = parse.outgoing(body, START, is_letter=True)
    assert [found.filename for found in outgoing.attachments] == ["logo.png", "bé.ics", "inside.eml"]


@pytest.mark.parametrize(
    ("raw", "subject", "text"),
    [
        (b"From: a@harbor.example\r\n\r\n", "", None),
        (b"From: a@harbor.example\r\nSubject: x\r\n\r\n\r\n", "x", "\n"),
        (b"From: a@harbor.example\r\nContent-Type: application/pdf\r\n\r\n%PDF\r\n", "", None),
    ],
)
def test_mail_programs_may_leave_out_subject_and_text(raw: bytes, subject: str, text: str | None) -> None:
    """docs/decisions/0020: RFC 5322 asks for neither."""
    outgoing = parse.outgoing(fields(raw), START, is_letter=True)
    assert (outgoing.subject, outgoing.text, outgoing.html) == (subject, text, None)


@pytest.mark.parametrize(
    ("header", "field"),
    [
        (b"To: ada@nodot\r\n", "to"),
        (b"To: Ada\r\n", "to"),
        (b"Cc: a@[192.0.2.1]\r\n", "cc"),
        (b'To: ada@quay.example, "a@b.example\r\n', "to"),
    ],
)
def test_a_bad_address_in_the_header_is_named(header: bytes, field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        fields(b"From: a@harbor.example\r\n" + header + b"\r\nx\r\n")
    assert caught.value.message.startswith(f"Invalid `{field}` field. ")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.booleans())
def test_any_octets_are_fields_or_a_problem(noise: bytes, with_head: bool) -> None:
    raw = (b"From: a@harbor.example\r\n" if with_head else b"") + noise
    with contextlib.suppress(Invalid, MissingField, InvalidAttachment):
        outgoing = parse.outgoing(fields(raw), START, is_letter=True)
        assert [found.key for found in outgoing.recipients()] == ["ada@quay.example"]
