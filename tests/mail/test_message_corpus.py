"""Our reading of mail against the standard library's, and against damage (INB-02 to INB-04, TRAP-05).

The judge reads well-formed mail as we must; on damaged mail it raises and stalls (TRAP-05), so there
only our own promises are checked.
"""

from __future__ import annotations

import email
import itertools
import random
import time
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pillarbox.mail.message.mime_parts import ParsedPart
from pillarbox.mail.message.parse import ParsedMessage, parse

TEXTS = {
    "ascii": "hello world\nsecond line\n",
    "latin": "Grüße aus Köln\n\nÄ\n",
    "cyrillic": "привет, мир\n",
    "kanji": "こんにちは世界\n",
    "emoji": "tide 🌊 high\n",
    "long": "x" * 3000 + "\n",
    "dots": ".\n..\nFrom here\n--\n--b\n",
    "empty": "",
}
CHARSETS = {
    "ascii": ("us-ascii", "utf-8"),
    "latin": ("iso-8859-1", "windows-1252", "utf-8"),
    "cyrillic": ("koi8-r", "windows-1251", "utf-8"),
    "kanji": ("iso-2022-jp", "shift_jis", "euc-jp", "utf-8"),
    "emoji": ("utf-8",),
    "long": ("utf-8",),
    "dots": ("utf-8",),
    "empty": ("utf-8",),
}
ENCODINGS = ("quoted-printable", "base64", "8bit")
NAMES = ("plan.png", "übersicht 2025.pdf", "名前" * 20 + ".txt", 'quo"te;x.csv', "a b.bin")
SHAPES = ("plain", "html", "both", "related", "files", "nested")


def corpus() -> Iterator[EmailMessage]:
    for (name, text), encoding, shape in itertools.product(TEXTS.items(), ENCODINGS, SHAPES):
        for charset in CHARSETS[name]:
            yield composed(text, charset, encoding, shape)


def composed(text: str, charset: str, encoding: str, shape: str) -> EmailMessage:
    made = EmailMessage(policy=policy.default.clone(max_line_length=100_000))
    made["From"] = "Jö Quay <jo@quay.example>"
    made["To"] = '"Doe, John" <john@x.example>, ann@x.example'
    made["Subject"] = f"Grüße {text.splitlines()[0][:40] if text else 'x'}"
    made["Date"] = "Fri, 03 Oct 2025 10:40:11 +0200"
    made["Message-ID"] = "<c81@quay.example>"
    cte = "quoted-printable" if encoding == "8bit" and len(text) > 900 else encoding
    if shape == "html":
        made.set_content(f"<p>{text}</p>\n", subtype="html", charset=charset, cte=cte)
    else:
        made.set_content(text, charset=charset, cte=cte)
    if shape in ("both", "related", "files"):
        made.add_alternative(f"<p>{text}</p>\n", subtype="html", charset=charset, cte=cte)
    if shape == "related":
        body = made.get_payload()[1]
        body.add_related(b"\x89PNG" + bytes(range(256)), "image", "png", cid="<p1@x>", filename="p.png")
    if shape == "files":
        for number, name in enumerate(NAMES):
            made.add_attachment(bytes(range(number * 7)), "application", "octet-stream", filename=name)
    if shape == "nested":
        inner = EmailMessage()
        inner["Subject"] = "inside"
        inner.set_content("inside\n")
        made.add_attachment(inner)
    return made


def test_well_formed_mail_is_read_as_the_standard_library_reads_it() -> None:
    """INB-02: headers, bodies, names and contents of some 300 messages in three kinds of line ends."""
    for number, made in enumerate(corpus()):
        raw = made.as_bytes(policy=policy.SMTP if number % 3 else policy.default)
        judge = email.message_from_bytes(raw, policy=policy.default)
        ours = parse(raw)
        assert [(h.name, h.value) for h in ours.headers] == [(n, str(v)) for n, v in judge.items()]
        assert ours.subject == str(judge["subject"])
        assert ours.date == judge["date"].datetime
        assert [m.address for m in ours.to] == [a.addr_spec for a in judge["to"].addresses]
        assert [m.display or "" for m in ours.to] == [a.display_name for a in judge["to"].addresses]
        assert ours.complete
        assert_same_bodies(ours, judge)
        assert_same_files(ours, judge)


def assert_same_bodies(ours: ParsedMessage, judge: EmailMessage) -> None:
    for kind, found in (("plain", ours.text), ("html", ours.html)):
        part = judge.get_body((kind,))
        assert (part is None) == (found is None)
        if part is not None and found is not None:
            theirs = part.get_content().replace("\r\n", "\n")
            assert found.replace("\r\n", "\n").rstrip("\n") == theirs.rstrip("\n")


def assert_same_files(ours: ParsedMessage, judge: EmailMessage) -> None:
    bodies = {id(judge.get_body(("plain",))), id(judge.get_body(("html",)))}
    theirs = [part for part in leaves(judge) if id(part) not in bodies]
    assert [a.content_type for a in ours.attachments] == [part.get_content_type() for part in theirs]
    for attachment, part in zip(ours.attachments, theirs, strict=True):
        if part.get_content_type() == "message/rfc822":
            assert parse(ours.content(attachment)).text == "inside\n"
            continue
        assert attachment.filename == part.get_filename()
        assert ours.content(attachment) == part.get_payload(decode=True)
        assert attachment.size == len(ours.content(attachment))


def leaves(part: EmailMessage) -> Iterator[EmailMessage]:
    if part.get_content_maintype() != "multipart":
        yield part
        return
    for inner in part.iter_parts():
        yield from leaves(inner)


SEEDS = [
    made.as_bytes(policy=policy.SMTP)
    for made in (
        composed(TEXTS["latin"], "iso-8859-1", "quoted-printable", "files"),
        composed(TEXTS["kanji"], "iso-2022-jp", "base64", "related"),
        composed(TEXTS["emoji"], "utf-8", "8bit", "nested"),
    )
]
FRAGMENTS = [
    *(b"\r\n", b"\n", b"\r", b"\0", b"--", b"=?", b"?=", b'"', b"(", b"<", b">", b";", b":", b"=", b"\xff"),
    *(
        b"boundary=",
        b"multipart/mixed",
        b"message/rfc822",
        b"base64",
        b"\r\n\r\n",
        b"charset=utf-16",
        b"*0*=",
    ),
]


def damaged(seed: bytes, chance: random.Random) -> bytes:
    """The message with up to ten pieces cut, doubled, exchanged or put in."""
    raw = bytearray(seed)
    for _ in range(chance.randint(1, 10)):
        start = chance.randrange(len(raw) + 1)
        piece = raw[start : start + chance.randrange(200)]
        match chance.randrange(4):
            case 0:
                del raw[start : start + len(piece)]
            case 1:
                raw[start:start] = piece
            case 2:
                raw[start : start + 1] = bytes([chance.randrange(256)])
            case _:
                raw[start:start] = chance.choice(FRAGMENTS)
    return bytes(raw)


def check(raw: bytes) -> None:
    """What holds for any octets: it is read, shown as valid Unicode without NUL, and lies in the raw mail."""
    message = parse(raw)
    shown = [
        *(message.author, message.subject, message.text or "", message.html or "", message.message_id or ""),
        *(message.references, message.received_for, message.joined_headers().items()),
        *(m for m in (*message.to, *message.cc, *message.bcc, *message.reply_to)),
        *((a.filename, a.content_type, a.content_id) for a in message.attachments),
    ]
    text = repr(shown) + "".join(str(part) for part in shown)
    text.encode("utf-8")
    assert "\0" not in text
    for attachment in message.attachments:
        assert attachment.size == len(message.content(attachment))
    inside(message.root, 0, len(raw))


def inside(part: ParsedPart, start: int, end: int) -> None:
    assert start <= part.start <= part.content_start <= part.end <= end
    for child in part.children:
        inside(child, part.content_start, part.end)


def test_a_thousand_damaged_messages() -> None:
    """Issue 6: 1,000 malformed messages by mutation; none raises, none takes long."""
    chance = random.Random(5322)
    slowest = 0.0
    for number in range(1000):
        raw = damaged(SEEDS[number % len(SEEDS)], chance)
        began = time.process_time()
        check(raw)
        slowest = max(slowest, time.process_time() - began)
    assert slowest < 0.5


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*FRAGMENTS, b"Content-Type: ", b"To: ", b"Subject: ", b"a", b" ", b"--b"])))
def test_any_octets_are_read(pieces: list[bytes]) -> None:
    """TRAP-05."""
    check(b"".join(pieces))


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_a_message_that_ends_anywhere(seed: int) -> None:
    raw = SEEDS[seed]
    for end in range(0, len(raw), max(1, len(raw) // 150)):
        check(raw[:end])
