"""What is written about attached files: names, types, and mail inside mail."""

from __future__ import annotations

import email
import email.policy
import re
from datetime import UTC, datetime
from email import utils
from email.message import EmailMessage
from typing import cast
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.mail.message.address import Mailbox
from pillarbox.mail.message.attachments import OutgoingFile, clean_filename, parse_content_type
from pillarbox.mail.message.compose import OutgoingMessage, compose

NAMES = {
    "map.pdf": "map.pdf",
    "../../etc/passwd": "passwd",
    "C:\\Users\\x\\report.doc": "report.doc",
    "a\r\nX: y": "aX: y",
    "a\0b.txt": "ab.txt",
    "invoice\u202efdp.exe": "invoicefdp.exe",
    "\u2066a\u2069\u200e\u061c.txt": "a.txt",
    "..": "attachment",
    "": "attachment",
    "a/": "attachment",
    "   ": "attachment",
    ".profile": ".profile",
    "e\u0301.txt": "e\u0301.txt",
}


@pytest.mark.parametrize(("given_name", "kept"), NAMES.items())
def test_a_name_keeps_its_last_visible_part(given_name: str, kept: str) -> None:
    """MSG-06: no path, no control character, no bidi override."""
    assert clean_filename(given_name) == kept


@pytest.mark.parametrize("name", ["a" * 300 + ".pdf", "é" * 300 + ".pdf", "漢" * 300, "a." + "x" * 300])
def test_a_name_has_at_most_255_octets(name: str) -> None:
    """MSG-06: cut between characters, the extension kept."""
    kept = clean_filename(name)
    assert 200 < len(kept.encode()) <= 255
    assert name.startswith(kept.removesuffix(".pdf"))
    assert kept.endswith(".pdf") == name.endswith(".pdf")


def test_a_plain_name_is_written_plainly() -> None:
    part, raw = _attached("map of harbor.pdf")
    assert b'\r\nContent-Disposition: attachment; filename="map of harbor.pdf"\r\n' in raw
    assert b'\r\nContent-Type: application/pdf; name="map of harbor.pdf"\r\n' in raw
    assert part.get_filename() == "map of harbor.pdf"


def test_a_name_outside_ascii_is_written_twice() -> None:
    """MSG-06: RFC 2231 with an ASCII form beside it."""
    _, raw = _attached("Größe Æ.pdf")
    assert b"filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%C3%86.pdf;" in raw
    assert b' filename="Gro_e _.pdf"\r\n' in raw
    assert b'name="Gro_e _.pdf"\r\n' in raw


def test_a_long_name_is_continued() -> None:
    """MSG-06, RFC 2231 section 3."""
    part, raw = _attached("漢字" * 30 + ".pdf")
    assert re.search(rb"filename\*0\*=UTF-8''%E6%BC%A2[%A-F0-9]+;\r\n filename\*1\*=%", raw)
    assert part.get_filename() == "漢字" * 30 + ".pdf"


@given(st.text(min_size=1, max_size=120))
def test_every_reader_reads_the_name(name: str) -> None:
    """MSG-01, MSG-06: the standard library and a second reader of RFC 2231."""
    wanted = clean_filename(name)
    part, raw = _attached(name)
    assert raw.isascii()
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    field = next(
        f for f in raw.decode().replace("\r\n ", " ").split("\r\n") if f.startswith("Content-Disposition")
    )
    pieces = re.findall(r"filename\*(?:\d+\*)?=(?:UTF-8'')?([^;\s]+)", field)
    plain = re.search(r'filename="([^"\\]*)"', field)
    assert plain is not None
    # The standard library takes a pair of quotes, or of angle brackets, from around a decoded name.
    assert part.get_filename() == utils.unquote(wanted)
    assert (unquote("".join(pieces)) or plain[1]) == wanted


TYPES = {
    "application/pdf": "application/pdf",
    " Text/HTML ": "text/html",
    "text/plain; charset=UTF-8": "text/plain; charset=UTF-8",
    'text/calendar;method=REQUEST;Charset="utf-8";': 'text/calendar; method=REQUEST; charset="utf-8"',
    'application/pdf; name="other.exe"': "application/pdf",
    "application/pdf; name*=utf-8''x; a=1; A=2": "application/pdf; a=1",
    "application/vnd.ms-excel.sheet+xml": "application/vnd.ms-excel.sheet+xml",
    "message/rfc822": "message/rfc822",
}


@pytest.mark.parametrize(("text", "normal"), TYPES.items())
def test_a_content_type_is_brought_to_its_normal_form(text: str, normal: str) -> None:
    assert parse_content_type(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        *("", "pdf", "application/", "/pdf", "a/b/c", "text/plain charset=x", "text/plain; charset", "té/xt"),
        *(
            "multipart/mixed; boundary=x",
            "Multipart/Related",
            "text/plain\r\nBcc: x",
            'text/plain; a="b\r\nc"',
        ),
        *("text/plain; a=b c", 'text/plain; a="b', "text/plain; a=é", "a/b" + ";x=1" * 200, "a/" + "b" * 600),
        *(
            "text/plain;" + " " * 600,
            "(comment) text/plain",
            'text/plain; a="\\"',
            "; ".join(["a/b", *"abcdefghijklmnopqrstuvwxyz"]),
        ),
    ],
)
def test_a_broken_or_dangerous_content_type_is_refused(text: str) -> None:
    """TRAP-01, MSG-07."""
    with pytest.raises(ValueError, match="content type"):
        parse_content_type(text)


FORWARDED = b"From: a@x.example\r\nSubject: Hello\r\n\r\nBody\r\n"


def test_an_attached_mail_stays_readable_as_a_mail() -> None:
    """MSG-08: message/rfc822 is neither base64 nor quoted-printable; LF of Unix files becomes CRLF."""
    for content in (FORWARDED, FORWARDED.replace(b"\r\n", b"\n")):
        part, raw = _attached("forward.eml", "message/rfc822", content)
        assert part.get_content_type() == "message/rfc822"
        assert part["Content-Transfer-Encoding"] == "7bit"
        assert FORWARDED in raw
        assert cast(EmailMessage, part.get_content())["Subject"] == "Hello"


@pytest.mark.parametrize(
    "content",
    [FORWARDED + "Grüße".encode(), FORWARDED + b"a" * 999, FORWARDED + b"a\rb", FORWARDED + b"\0"],
)
def test_an_attached_mail_that_is_not_clean_travels_as_a_file(content: bytes) -> None:
    """MSG-08, MSG-01."""
    part, raw = _attached("forward.eml", "message/rfc822", content)
    assert part.get_content_type() == "application/octet-stream"
    assert part["Content-Transfer-Encoding"] == "base64"
    assert part.get_filename() == "forward.eml"
    assert part.get_content() == content
    assert b"\0" not in raw


def test_an_attached_mail_cannot_end_the_part_early() -> None:
    """MSG-07: a forwarded mail of ours with boundaries in it."""
    _, inner = _attached("map.pdf")
    part, _ = _attached("forward.eml", "message/rfc822", inner)
    forwarded = cast(EmailMessage, part.get_content())
    assert [p.get_content_type() for p in forwarded.walk()] == [
        "multipart/mixed",
        "text/plain",
        "application/pdf",
    ]


def _attached(name: str, kind: str = "application/pdf", content: bytes = b"x") -> tuple[EmailMessage, bytes]:
    """The attachment as a reader sees it, and the octets of the whole message."""
    raw = compose(
        OutgoingMessage(
            sender=Mailbox("notes", "harbor.example"),
            to=(Mailbox("ada", "quay.example"),),
            subject="Map",
            date=datetime(2026, 10, 3, tzinfo=UTC),
            message_id="<1@harbor.example>",
            seed=b"1",
            text="Here",
            attachments=[OutgoingFile(name, kind, content)],
        )
    )
    read = email.message_from_bytes(raw, policy=email.policy.default)
    return cast(EmailMessage, list(read.iter_parts())[1]), raw
