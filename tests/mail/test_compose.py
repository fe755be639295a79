"""Whole messages: structure, clean octets, nothing that was not asked for, the same octets every time."""

from __future__ import annotations

import email
import email.policy
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pillarbox.mail.message.address import Mailbox
from pillarbox.mail.message.compose import (
    OutgoingFile,
    OutgoingMessage,
    compose,
    needs_smtputf8,
    new_message_id,
)
from pillarbox.mail.message.headers import HeaderError

NOTES = Mailbox("notes", "harbor.example", "Harbor")
ADA = Mailbox("ada", "quay.example")
PLAIN = OutgoingMessage(
    sender=NOTES,
    to=(ADA,),
    subject="Berth 12",
    date=datetime(2026, 10, 3, 8, 15, 2, tzinfo=UTC),
    message_id="<6c1f0e9a@harbor.example>",
    seed=b"0199a3c2",
    text="Ready",
)
PDF = OutgoingFile("map.pdf", "application/pdf", b"%PDF-1.7\n\0\xff")
LOGO = OutgoingFile("logo.png", "image/png", b"\x89PNG\r\n\x1a\n", cid="logo")

BODIES = st.text(max_size=300) | st.lists(
    st.sampled_from(
        ["\r", "\n", "\r\n", ".", "=", " ", "\t", "é", "漢", "\0", "a" * 1000, "From ", "--=_", "👩‍👩‍👧"]
    ),
    max_size=40,
).map("".join)


def test_a_simple_message_to_the_octet() -> None:
    """MSG-01, MSG-02, MSG-04."""
    assert compose(PLAIN) == (
        b"From: Harbor <notes@harbor.example>\r\n"
        b"To: ada@quay.example\r\n"
        b"Subject: Berth 12\r\n"
        b"Date: Sat, 03 Oct 2026 08:15:02 +0000\r\n"
        b"Message-ID: <6c1f0e9a@harbor.example>\r\n"
        b"MIME-Version: 1.0\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: 7bit\r\n"
        b"\r\n"
        b"Ready\r\n"
    )


ALTERNATIVE = ("multipart/alternative", ["text/plain", "text/html"])


@pytest.mark.parametrize(
    ("change", "structure"),
    [
        ({}, "text/plain"),
        ({"text": None, "html": "<p>a"}, "text/html"),
        ({"text": "", "html": "<p>a"}, "text/html"),
        ({"html": "<p>a"}, ALTERNATIVE),
        ({"html": ""}, "text/plain"),
        ({"attachments": [PDF]}, ("multipart/mixed", ["text/plain", "application/pdf"])),
        ({"text": None, "attachments": [PDF]}, ("multipart/mixed", ["text/plain", "application/pdf"])),
        ({"html": "<p>a", "attachments": [PDF]}, ("multipart/mixed", [ALTERNATIVE, "application/pdf"])),
        ({"html": "<p>a", "attachments": [LOGO]}, ("multipart/related", [ALTERNATIVE, "image/png"])),
        (
            {"html": "<p>a", "text": "", "attachments": [LOGO]},
            ("multipart/related", ["text/html", "image/png"]),
        ),
        (
            {"html": "<p>a", "attachments": [PDF, LOGO, PDF, LOGO]},
            (
                "multipart/mixed",
                [
                    ("multipart/related", [ALTERNATIVE, "image/png", "image/png"]),
                    "application/pdf",
                    "application/pdf",
                ],
            ),
        ),
        ({"attachments": [LOGO]}, ("multipart/mixed", ["text/plain", "image/png"])),
    ],
)
def test_levels_with_one_child_are_left_out(change: dict[str, object], structure: object) -> None:
    """MSG-07: mixed( related( alternative(text, html), inline…), attachments…)."""
    composed = compose(replace(PLAIN, **change))  # type: ignore[arg-type]
    _assert_clean(composed)
    assert _structure(_read(composed)) == structure


def test_the_related_part_names_its_root_and_the_inline_part_its_id() -> None:
    """MSG-07, RFC 2387, emails.md 1.4."""
    read = _read(compose(replace(PLAIN, html='<img src="cid:logo">', attachments=[LOGO])))
    assert read.get_param("type") == "multipart/alternative"
    image = list(read.iter_parts())[1]
    assert image["Content-ID"] == "<logo>"
    assert image["Content-Disposition"] == 'inline; filename="logo.png"'
    assert image.get_content() == LOGO.content
    lonely = list(_read(compose(replace(PLAIN, attachments=[LOGO]))).iter_parts())[1]
    assert lonely.get_content_disposition() == "inline"


def test_a_message_with_everything_has_each_field_once() -> None:
    """MSG-02, MSG-09."""
    custom = [
        ("X-Entity-Ref-ID", "1"),
        ("In-Reply-To", "<a@x.example>"),
        ("List-Unsubscribe", "<https://x.example/u>"),
    ]
    full = replace(
        PLAIN, html="<p>é", cc=[ADA, NOTES], reply_to=[ADA], headers=custom, attachments=[PDF, LOGO]
    )
    head = compose(full).partition(b"\r\n\r\n")[0]
    names = re.findall(rb"(?m)^([^ :]+):", head)
    assert names == [
        *(b"From", b"To", b"Cc", b"Reply-To", b"Subject", b"Date", b"Message-ID", b"X-Entity-Ref-ID"),
        *(b"In-Reply-To", b"List-Unsubscribe", b"MIME-Version", b"Content-Type"),
    ]
    assert len(names) == len(set(names))


def test_without_recipients_to_show_the_field_is_an_empty_group() -> None:
    """MSG-02, MSG-09: mail to Bcc alone."""
    assert b"\r\nTo: undisclosed-recipients:;\r\n" in compose(replace(PLAIN, to=()))
    assert b"Subject" not in compose(replace(PLAIN, subject=""))


OURS = ["From", "To", "Cc", "Bcc", "Reply-To", "Subject", "Date", "Message-ID", "MIME-Version", "Sender"]
SERVERS = ["Received", "Return-Path", "DKIM-Signature", "ARC-Seal", "Authentication-Results", "Resent-Bcc"]


@pytest.mark.parametrize("name", [*OURS, *SERVERS, "Content-Type", "Content-Transfer-Encoding"])
@pytest.mark.parametrize("form", [str, str.lower, str.upper, str.swapcase])
def test_custom_headers_cannot_repeat_ours_or_forge_a_server_s(name: str, form: type[str]) -> None:
    """MSG-02, MSG-09."""
    with pytest.raises(HeaderError):
        compose(replace(PLAIN, headers=[(form(name), "victim@evil.test")]))


def test_threading_fields_stand_once() -> None:
    """MSG-02."""
    with pytest.raises(HeaderError):
        compose(replace(PLAIN, headers=[("References", "<a@x.example>"), ("references", "<b@x.example>")]))
    assert compose(replace(PLAIN, headers=[("X-A", "1"), ("X-A", "2")])).count(b"\r\nX-A: ") == 2


INJECTION = "\r\nBcc: victim@evil.test"


@pytest.mark.parametrize(
    "change",
    [
        {"subject": INJECTION},
        {"sender": Mailbox("a", "x.example", INJECTION)},
        {"to": [Mailbox("a" + INJECTION, "x.example")]},
        {"cc": [Mailbox("a", "x.example" + INJECTION)]},
        {"reply_to": [Mailbox("a", "x.example", "a\nb")]},
        {"message_id": "<a@x.example>" + INJECTION},
        {"message_id": "a@x.example"},
        {"headers": [("X-A", INJECTION)]},
        {"headers": [("X-A: 1" + INJECTION + "\r\nX-B", "1")]},
        {"html": "<p>", "attachments": [replace(LOGO, cid="a>" + INJECTION)]},
        {"date": datetime(2026, 1, 1)},
    ],
)
def test_nothing_is_injected(change: dict[str, object]) -> None:
    """TRAP-01, MSG-04."""
    with pytest.raises(HeaderError):
        compose(replace(PLAIN, **change))  # type: ignore[arg-type]


def test_an_encoded_line_end_stays_text() -> None:
    """TRAP-01, as it was reproduced."""
    trick = "Berth =?UTF-8?Q?=0A?= Bcc: victim@evil.test"
    composed = compose(
        replace(PLAIN, subject=trick, to=[Mailbox("a", "x.example", trick)], headers=[("X-A", trick)])
    )
    read = _read(composed)
    assert "Bcc" not in read
    assert read["Subject"] == trick
    assert read["X-A"] == trick
    assert read["To"].addresses[0].display_name == trick
    again = email.message_from_bytes(read.as_bytes(policy=email.policy.SMTP), policy=email.policy.default)
    assert again["From"].addresses[0].addr_spec == "notes@harbor.example"


@given(BODIES, BODIES)
@example("a\rb\nc\r\nd\0e", "=\n=" * 100)
@example("trailing \t\nblanks \n.\n", "é" * 5000)
def test_bodies_arrive_as_they_were_in_clean_octets(text: str, html: str) -> None:
    """MSG-01, MSG-08, TRAP-08: only CRLF, no NUL, ASCII, lines of at most 998 octets."""
    composed = compose(replace(PLAIN, text=text, html=html))
    _assert_clean(composed)
    assert composed.isascii()
    parts = [part for part in _read(composed).walk() if not part.is_multipart()]
    wanted = [body for body in (text, html) if body] or [""]
    assert [_text(part) for part in parts] == [_line_ended(_crlf(body)) for body in wanted]
    assert {part["Content-Transfer-Encoding"] for part in parts} <= {"7bit", "quoted-printable", "base64"}


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *(("Ready\n" * 100, "7bit"), ("a" * 998, "7bit"), ("a" * 999, "quoted-printable")),
        *(
            ("b\n" * 999 + "a" * 999, "quoted-printable"),
            ("Grüße aus Köln, bis morgen\n" * 9, "quoted-printable"),
        ),
        *(("漢字" * 50, "base64"), ("a\0b", "quoted-printable")),
    ],
)
def test_the_encoding_follows_from_the_content(text: str, encoding: str) -> None:
    """MSG-08."""
    assert _read(compose(replace(PLAIN, text=text)))["Content-Transfer-Encoding"] == encoding


@given(st.binary(max_size=400), st.booleans())
def test_attachments_arrive_octet_for_octet(content: bytes, inline: bool) -> None:
    """MSG-01, MSG-08."""
    file = OutgoingFile("a.bin", "application/octet-stream", content, "x" if inline else None)
    composed = compose(replace(PLAIN, html="<p>", attachments=[file]))
    _assert_clean(composed)
    part = next(p for p in _read(composed).walk() if p.get_filename() == "a.bin")
    assert part.get_payload(decode=True) == content


def test_a_boundary_occurs_in_no_part() -> None:
    """MSG-07: even when a body holds the boundaries that an earlier attempt had."""
    first = replace(PLAIN, html="<p>a", attachments=[PDF])
    boundaries = re.findall(rb'boundary="([^"]+)"', compose(first))
    assert len(set(boundaries)) == 2
    quoting = "".join(f"--{boundary.decode()}\r\n\r\n--{boundary.decode()}--\r\n" for boundary in boundaries)
    composed = compose(replace(first, text=quoting))
    again = re.findall(rb'boundary="([^"]+)"', composed)
    assert not set(again) & set(boundaries)
    assert _structure(_read(composed)) == ("multipart/mixed", [ALTERNATIVE, "application/pdf"])
    assert all(1 <= len(boundary) <= 70 for boundary in again)


def test_the_same_message_is_the_same_octets_everywhere() -> None:
    """MSG-03, MSG-04: another process with another locale, zone and hash seed composes the same."""
    full = replace(PLAIN, html="<p>é", subject="Größe", attachments=[PDF, LOGO])
    composed = compose(full)
    assert compose(full) == composed
    assert compose(replace(full, seed=b"other")) != composed
    program = (
        "import sys, datetime; from pillarbox.mail.message.address import Mailbox;"
        "from pillarbox.mail.message.compose import OutgoingFile, OutgoingMessage, compose;"
        f"sys.stdout.buffer.write(compose({full!r}))"
    )
    environment = {**os.environ, "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kolkata", "PYTHONHASHSEED": "7"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert run.stdout == composed


def test_message_ids_never_repeat_and_tell_nothing() -> None:
    """MSG-03: a million ids, each with 128 random bits and the domain."""
    ids = {new_message_id("x.example", secrets.randbits) for _ in range(1_000_000)}
    assert len(ids) == 1_000_000
    assert all(re.fullmatch(r"<[0-9a-f]{32}@x\.example>", message_id) for message_id in list(ids)[:1000])
    assert new_message_id("x.example", lambda bits: (1 << bits) - 1) != new_message_id(
        "x.example", lambda bits: 0
    )


def test_a_mailbox_outside_ascii_needs_smtputf8_and_nothing_else_does() -> None:
    """MSG-11."""
    utf8 = replace(PLAIN, cc=[Mailbox("jörg", "x.example", "Jörg")])
    assert needs_smtputf8(utf8)
    assert "<jörg@x.example>".encode() in compose(utf8)
    everything = replace(
        PLAIN, subject="é", text="é", headers=[("X-A", "é")], sender=Mailbox("a", "x.example", "é")
    )
    assert not needs_smtputf8(everything)
    assert compose(everything).isascii()


def test_composing_is_fast_enough_for_the_engine() -> None:
    """3,000 mails/s of 4 kB on one core need 330 µs each; measured below half of that."""
    line = "<p>Hello Ada, your berth is <b>ready</b> and waiting.</p>\n"
    message = replace(PLAIN, html=line * 60, text=line * 10)
    best = 1.0
    for _ in range(25):
        begin = time.thread_time()
        for _ in range(20):
            compose(message)
        best = min(best, (time.thread_time() - begin) / 20)
    assert best < 0.00033


def _read(composed: bytes) -> EmailMessage:
    return email.message_from_bytes(composed, policy=email.policy.default)


def _structure(part: EmailMessage) -> object:
    kind = part.get_content_type()
    if not part.is_multipart():
        return kind
    children = cast(Sequence[EmailMessage], part.get_payload())
    return kind, [_structure(child) for child in children]


def _text(part: EmailMessage) -> str:
    return _line_ended(cast(bytes, part.get_payload(decode=True)).decode())


def _line_ended(text: str) -> str:
    """A message always ends a line, so a missing last line end may be added."""
    return text if text.endswith("\r\n") else text + "\r\n"


def _crlf(body: str) -> str:
    return re.sub("\r\n|\r|\n", "\r\n", body)


def _assert_clean(composed: bytes) -> None:
    assert b"\0" not in composed
    assert re.search(rb"\r(?!\n)|(?<!\r)\n", composed) is None
    assert composed.endswith(b"\r\n")
    assert max(map(len, composed.split(b"\r\n"))) <= 998
