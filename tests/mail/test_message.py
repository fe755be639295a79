"""Received mail as it is shown: receiving.md 1 to 3, 10; INB-02 to INB-04, TRAP-04, TRAP-05."""

from __future__ import annotations

import time
import tracemalloc
from datetime import UTC, datetime

import pytest

from pillarbox.mail.message import address_fields, charsets
from pillarbox.mail.message.bodies import LONGEST_BODY
from pillarbox.mail.message.header_block import LONGEST_BLOCK, MOST_FIELDS
from pillarbox.mail.message.mime_parts import DEEPEST, MOST_PARTS
from pillarbox.mail.message.parse import ParsedMessage, parse

HEAD = "From: Ada Quay <ada@quay.example>\nTo: help@harbor.example\nSubject: Berth\n"


def mail(text: str, *, ends: str = "\r\n") -> ParsedMessage:
    """The message of this text; what is not ASCII in it stands for the octets of Latin-1."""
    return parse(text.replace("\n", ends).encode("latin-1"))


def mixed(*parts: str, kind: str = "mixed", boundary: str = "b") -> str:
    divided = "".join(f"--{boundary}\n{part}\n" for part in parts)
    return f'Content-Type: multipart/{kind}; boundary="{boundary}"\n\n{divided}--{boundary}--\n'


PLAIN = "Content-Type: text/plain\n\nhello"
HTML = "Content-Type: text/html\n\n<p>hello</p>"
FILE = 'Content-Type: application/pdf; name="a.pdf"\nContent-Transfer-Encoding: base64\n\naGVsbG8='


def test_a_plain_message() -> None:
    """receiving.md 1: the fields of the stored object."""
    message = mail(
        "Return-Path: <ada@quay.example>\n"
        "Received: from a.example by mx.harbor.example with ESMTP id 7\n\tfor <Help@Harbor.Example>; x\n"
        "Received: from b by a for <list@a.example>; x\nReceived: by z for <Help@harbor.example>; x\n"
        "From: Ada Quay <ada@quay.example>\nTo: help@harbor.example, Bo <bo@x.example>, help@HARBOR.example\n"
        "Cc: c@x.example\nBcc: d@x.example\nReply-To: r@x.example\nSubject: Where is\n  berth 12?\n"
        "Date: Fri, 3 Oct 2025 10:40:11 +0200 (CEST)\nMessage-ID: <c81@quay.example>\n"
        "In-Reply-To: <a@b>\nReferences: <z@b>\n <a@b>\n\nhello\nworld\n"
    )
    assert message.author == "Ada Quay <ada@quay.example>"
    assert address_fields.addresses(message.to) == ("help@harbor.example", "bo@x.example")
    assert [m.address for m in (*message.cc, *message.bcc, *message.reply_to)] == [
        "c@x.example",
        "d@x.example",
        "r@x.example",
    ]
    assert message.subject == "Where is berth 12?"
    assert message.date == datetime(2025, 10, 3, 8, 40, 11, tzinfo=UTC)
    assert message.message_id == "<c81@quay.example>"
    assert message.in_reply_to == ("<a@b>",)
    assert message.references == ("<z@b>", "<a@b>")
    assert message.received_for == ("Help@harbor.example", "list@a.example")
    assert message.text == "hello\nworld\n"
    assert message.html is None
    assert message.attachments == ()
    assert message.complete


def test_what_is_missing_is_empty() -> None:
    message = parse(b"")
    assert (message.author, message.subject, message.message_id, message.date) == ("", "", None, None)
    assert (message.to, message.received_for, message.text, message.attachments) == ((), (), "", ())
    assert parse(b"\r\nbody").text == "body"


@pytest.mark.parametrize("ends", ["\r\n", "\n", "\r"])
def test_every_kind_of_line_end(ends: str) -> None:
    """INB-02: stored mail and mail from files."""
    message = mail(HEAD + mixed(PLAIN, HTML, FILE), ends=ends)
    assert (message.subject, message.text, message.html) == ("Berth", "hello", "<p>hello</p>")
    assert message.content(message.attachments[0]) == b"hello"


def test_the_headers_are_shown_decoded_and_joined() -> None:
    """receiving.md 2.2: lower case, unfolded, RFC 2047, invalid bytes, several of a name."""
    message = mail(
        "From: =?utf-8?q?J=C3=B6?= <j@x.example>\nX-Two: one\nx-two:  two \nX-Fold: a\n\t  b\n"
        "X-Bad: caf\xe9\nX-Nul: a\0b\nX-Empty:\n\n"
    )
    assert message.joined_headers() == {
        "from": "Jö <j@x.example>",
        "x-two": "one, two",
        "x-fold": "a b",
        "x-bad": "caf\ufffd",
        "x-nul": "a\ufffdb",
        "x-empty": "",
    }


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("=?utf-8?B?w7w=?= =?utf-8?B?w7w=?=", "üü"),
        ("=?utf-8?Q?=C3?=\n =?utf-8?Q?=BC?=", "ü"),
        ("=?UTF-8?b?w7w?= x", "ü x"),
        ("=?iso-8859-1?q?=FC_?= =?utf-8?q?=C3=BC?=", "ü ü"),
        ("=?utf-8*de?q?=C3=BC?=", "ü"),
        ('"=?utf-8?q?=C3=BC?="', '"ü"'),
        ("=?utf-8?q?a b=20c?=d", "a b cd"),
        ("=?klingon?q?=C3=BC?=", "ü"),
        ("=?gb2312?B?xOO6ww==?=", "你好"),
        ("=?iso-2022-jp?B?GyRCJDMkcxsoQg==?=", "こん"),
        ("=?utf-8?q?=0D=0ABcc:_x?=", " Bcc: x"),
        ("=?utf-8?x?abc?= =?", "=?utf-8?x?abc?= =?"),
    ],
)
def test_encoded_words_as_they_are_really_written(raw: str, shown: str) -> None:
    """MSG-05, TRAP-01: decoded for people, and no line end comes out of a word."""
    assert mail(f"Subject: {raw}\n\n").subject == shown


@pytest.mark.parametrize(
    ("raw", "subject", "text"),
    [
        (b"X: y\r\nno colon\r\nSubject: s\r\n\r\nbody", "s", "body"),
        (b"no colon\r\n\tfolded\r\nSubject: s\r\n\r\nbody", "s", "body"),
        (b"no colon\nat all\nSubject: s\nagain not\nTo: a@b.c\n\nbody", "s", "body"),
        (b": no name\r\nb\xc3\xb6se: x\r\nSubject: s\r\n\r\nbody", "s", "body"),
        (b"Subject: s\r\nDear Ada,\r\n\r\nit rises.", "s", "Dear Ada,\n\nit rises."),
        (b"Subject: s\r\nDear Ada,\r\nnote: it rises.\r\n\r\nBen", "s", "Dear Ada,\nnote: it rises.\n\nBen"),
        (b"Subject: s\r\nDear Ada,\r\nTo: nobody", "s", "Dear Ada,\nTo: nobody"),
        (b"Subject: s\r\n\r\nno colon\r\nSubject: t\r\n\r\nx", "s", "no colon\nSubject: t\n\nx"),
    ],
)
def test_a_line_that_is_no_field_hides_nothing_behind_it(raw: bytes, subject: str, text: str) -> None:
    """As people's mail programs read it; without an empty line behind it, it is where the text begins."""
    message = parse(raw)
    assert (message.subject, message.text) == (subject, text)


def test_lines_that_are_no_fields_cost_linear_time() -> None:
    """INB-03."""
    began = time.process_time()
    for lines in (b"no\r\nTo: a@b.c\r\n", b"no\r\n", b"no\r\nx: y\r\n", b":\r\n"):
        parse(lines * (20_000_000 // len(lines)) + b"\r\nbody")
        parse(lines * 20_000)
    assert time.process_time() - began < 4


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ('"Doe, John" <j@x.y>, b@c.d (Bob)', [("j@x.y", "Doe, John"), ("b@c.d", "Bob")]),
        ("undisclosed-recipients:;", []),
        ("g: a@b.c, Bo <d@e.f>; x@y.z", [("a@b.c", None), ("d@e.f", "Bo"), ("x@y.z", None)]),
        ("=?utf-8?q?a=40evil.test?=@good.test", [("=?utf-8?q?a=40evil.test?=@good.test", None)]),
        ("<@a,@b:c@d.e>", [("c@d.e", None)]),
        ("John Doe j@x.y", [("j@x.y", "John Doe")]),
        ("a@b.c; d@e.f", [("a@b.c", None), ("d@e.f", None)]),
        ("Foo <a@b.c", [("a@b.c", "Foo")]),
        ("a @ b . c", [("a@b.c", None)]),
        ('"john doe"@x.y', [('"john doe"@x.y', None)]),
        ('"a\\"b" <x@y.z>', [("x@y.z", 'a"b')]),
        ("A (one (two) three) <a@b.c>", [("a@b.c", "A")]),
        (",, a@b.c ,", [("a@b.c", None)]),
        ("Just Name", [("", "Just Name")]),
        ("root", [("root", None)]),
        ("root (Charlie), <postmaster>", [("root", "Charlie"), ("postmaster", None)]),
        ("=?utf-8?q?root?=", [("", "root")]),
        ("A <a@b.c> <d@e.f>", [("d@e.f", "A")]),
    ],
)
def test_mailboxes_as_they_are_really_written(raw: str, found: list[tuple[str, str | None]]) -> None:
    """INB-02; TRAP-04: an encoded word is no address, and the display name never becomes one."""
    assert [(m.address, m.display) for m in mail(f"To: {raw}\n\n").to] == found


@pytest.mark.parametrize(
    "raw",
    [
        "a@b.c, d@e.f (two of them are no fault)",
        "A <a@b.c>",
        '"victim@bank.example" <e@evil.example>',
    ],
)
def test_a_well_formed_list_is_exact(raw: str) -> None:
    assert address_fields.read(raw.encode()).exact


@pytest.mark.parametrize(
    "raw",
    [
        "alice@a.test)bob@b.test",
        "=?utf-8?q?a=40evil.test?=@good.test",
        "<@evil.test:ann@good.test>",
        "A <a@b.c> <d@e.f>",
        "g: a@b.c;",
        "a@b.c d@e.f",
        "a@b@c.d",
        "Foo <a@b.c",
        '"open <a@b.c>',
        "(open a@b.c",
        "",
        "nobody",
    ],
)
def test_what_had_to_be_guessed_is_not_exact(raw: str) -> None:
    """DMARC-02, TRAP-04: identity checks trust no repaired From."""
    assert not address_fields.read(raw.encode()).exact


def test_two_from_headers_are_not_exact() -> None:
    """DMARC-02."""
    assert not mail("From: a@b.c\nFrom: d@e.f\n\n").authors.exact


def test_the_author_can_be_given_back_as_it_is_shown() -> None:
    """receiving.md 1: one form everywhere; a name with specials is quoted."""
    assert mail('From: "Doe, John" <j@x.y>\n\n').author == '"Doe, John" <j@x.y>'
    assert mail("From: =?utf-8?q?Doe=2C_J=C3=B6?= <j@x.y>\n\n").author == '"Doe, Jö" <j@x.y>'
    assert mail("From: nobody\n\n").author == "nobody"


def test_bodies_and_attachments_of_nested_multiparts() -> None:
    """receiving.md 1.2: every leaf that is not a body is an attachment, inline images included."""
    picture = 'Content-Type: image/png\nContent-ID: <p1>\nContent-Disposition: inline; filename="p.png"\n\nx'
    related = mixed(HTML, picture, kind="related", boundary="r")
    alternative = mixed(PLAIN, related, kind="alternative", boundary="a")
    message = mail(HEAD + mixed(alternative, FILE, "Content-Type: text/plain\n\nfooter"))
    assert (message.text, message.html) == ("hello", "<p>hello</p>")
    assert [
        (a.filename, a.content_type, a.content_disposition, a.content_id, a.size) for a in message.attachments
    ] == [
        ("p.png", "image/png", "inline", "p1", 1),
        ("a.pdf", "application/pdf", None, None, 5),
        (None, "text/plain", None, None, 6),
    ]


def test_html_parts_that_stand_beside_each_other_are_put_together() -> None:
    """receiving.md 3: in one multipart/mixed, but not those in attachments or nested messages."""
    attached = "Content-Type: text/html\nContent-Disposition: attachment\n\n<p>no</p>"
    nested = f"Content-Type: message/rfc822\n\nSubject: in\n{HTML}"
    message = mail(HEAD + mixed(PLAIN, HTML, FILE, HTML, attached, nested))
    assert message.html == "<p>hello</p><p>hello</p>"
    assert [a.filename for a in message.attachments] == ["a.pdf", None, "in.eml"]


def test_only_the_root_of_a_related_part_is_a_body() -> None:
    frame = "Content-Type: text/html\nContent-ID: <frame>\n\n<p>frame</p>"
    root = "Content-Type: text/html\nContent-ID: <root>\n\n<p>root</p>"
    content = mixed(frame, root, kind='related; start="<root>"')
    assert mail(HEAD + content).html == "<p>root</p>"


def test_a_text_with_a_file_name_is_a_body_only_where_there_is_no_other() -> None:
    named = 'Content-Type: text/plain; name="notes.txt"\nContent-Disposition: inline\n\nnotes'
    assert mail(HEAD + mixed(named, PLAIN)).text == "hello"
    alone = mail(HEAD + mixed(named, FILE))
    assert alone.text == "notes"
    assert [a.filename for a in alone.attachments] == ["a.pdf"]


def test_a_message_that_is_only_an_attachment() -> None:
    """receiving.md 10: empty body, only attachment."""
    message = mail(HEAD + FILE)
    assert (message.text, message.html) == (None, None)
    assert [(a.filename, a.size) for a in message.attachments] == [("a.pdf", 5)]
    assert message.content(message.attachments[0]) == b"hello"


def test_calendar_signature_report_and_tnef_parts_are_attachments() -> None:
    """receiving.md 1.2 and 10; TNEF is not unpacked."""
    kinds = ["text/calendar", "application/pkcs7-signature", "message/delivery-status", "application/ms-tnef"]
    message = mail(HEAD + mixed(PLAIN, *[f"Content-Type: {kind}\n\nx" for kind in kinds]))
    assert [a.content_type for a in message.attachments] == kinds
    assert message.text == "hello"


def test_a_nested_message_is_one_attachment_and_can_be_read_in_turn() -> None:
    nested = (
        f"Content-Type: message/rfc822\n\nSubject: =?utf-8?q?=C3=9C/ber?=\n{mixed(PLAIN, FILE, boundary='i')}"
    )
    message = mail(HEAD + mixed(PLAIN, nested))
    assert [(a.filename, a.content_type) for a in message.attachments] == [("Ü_ber.eml", "message/rfc822")]
    inner = parse(message.content(message.attachments[0]))
    assert inner.subject == "Ü/ber"
    assert [a.filename for a in inner.attachments] == ["a.pdf"]


def test_parts_of_a_digest_are_messages() -> None:
    """RFC 2046 5.1.5."""
    message = mail(HEAD + mixed("\nSubject: one\n\nx", "\nSubject: two\n\ny", kind="digest"))
    assert [a.filename for a in message.attachments] == ["one.eml", "two.eml"]


@pytest.mark.parametrize(
    "body",
    [
        "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nhello",
        "Content-Type: multipart/mixed; boundary=b\n\npre\n--b \t\n\nhello\n--b--\nepilogue\n--b\n\nx",
        "Content-Type: multipart/mixed; boundary=x\n\n--right\nContent-Type: text/plain\n\nhello\n--right--",
        "Content-Type: multipart/mixed\n\n--right\nContent-Type: text/plain\n\nhello\n--right--\n",
        'Content-Type: multipart/mixed; boundary="b\n\n--b\n\nhello\n--b--',
        "Content-Type: multipart/mixed; boundary=b\n\n--bb\n--b\n\nhello\n--b\n",
        "Content-Type: multipart/mixed; boundary=b; boundary=c\n\n--b\n\nhello\n--b--",
        "Content-Type: multipart/alternative; boundary=b\n\n--b\n" + mixed(PLAIN, boundary="b-2") + "--b--",
    ],
)
def test_boundaries_that_are_broken(body: str) -> None:
    """receiving.md 10: missing boundary end; INB-02."""
    assert (mail(HEAD + body).text or "").strip() == "hello"


def test_a_multipart_that_cannot_be_divided_is_shown_as_it_stands() -> None:
    message = mail(HEAD + "Content-Type: multipart/mixed; boundary=b\n\njust text\n")
    assert message.text == "just text\n"


def test_a_separator_that_is_missing_begins_the_body() -> None:
    """As MTAs see it: the first line that is no field ends the header block."""
    message = mail("Subject: x\nthis is the body\nTo: a@b.c\n")
    assert (message.subject, message.text, message.to) == ("x", "this is the body\nTo: a@b.c\n", ())


def test_the_first_line_of_an_mbox_file_is_passed_over() -> None:
    assert mail("From ada@quay.example Fri Oct  3\nSubject: x\n\nbody").subject == "x"


@pytest.mark.parametrize(
    ("declared", "octets", "text"),
    [
        ("text/plain", "grüße".encode(), "grüße"),
        ("text/plain", "grüße".encode("latin-1"), "grüße"),
        ("text/plain; charset=us-ascii", "grüße".encode(), "grüße"),
        ("text/plain; charset=utf-8", "grüße".encode("latin-1"), "grüße"),
        (
            "text/plain; charset=utf-8",
            "größer grüße müßig".encode()[:-1] + b"\xc3\xc3",
            "größer grüße müßi\ufffd\ufffd",
        ),
        ("text/plain; charset=iso-8859-1", b"\x93quoted\x94 \x80", "“quoted” €"),
        ("text/plain; charset=KOI8-R", "привет".encode("koi8-r"), "привет"),
        ("text/plain; charset=gb2312", "鎔基".encode("gbk"), "鎔基"),
        ("text/plain; charset=shift_jis", "①".encode("cp932"), "①"),
        ("text/plain; charset=utf-7", b"+AGE-, 1 +- 1", "a, 1 + 1"),
        ("text/plain; charset=utf-7", b"+2AA-x+AAA-+2", "\ufffdx\ufffd\ufffd"),
        ("text/plain; charset=utf-7", "+AGE-ü".encode(), "+AGE-ü"),
        ("text/html; charset=utf-7", b"+ADw-script+AD4-", "+ADw-script+AD4-"),
        ("text/html", b"<meta charset=utf-7>+ADw-script+AD4-", "<meta charset=utf-7>+ADw-script+AD4-"),
        ("text/plain; charset=klingon", "ü".encode(), "ü"),
        ("text/plain; charset=utf-16", "ü".encode("utf-16"), "ü"),
        ("text/plain; charset=utf-8", b"\xef\xbb\xbfhello", "hello"),
        ("text/plain; charset=utf-8", "a\0üüüü".encode() + b"\xed\xa0\x80", "a\ufffdüüüü" + "\ufffd" * 3),
        (
            "text/html",
            b'<meta charset="koi8-r">' + "привет".encode("koi8-r"),
            '<meta charset="koi8-r">привет',
        ),
        ("text/html; charset=utf-8", b'<meta charset="koi8-r">' + "ü".encode(), '<meta charset="koi8-r">ü'),
        ("text/html", b'<meta charset="utf-16">' + "ü".encode(), '<meta charset="utf-16">ü'),
    ],
)
def test_charsets_that_lie_or_are_not_known(declared: str, octets: bytes, text: str) -> None:
    """INB-04; receiving.md 3: declared, else meta, else UTF-8, else windows-1252."""
    message = parse(b"Content-Type: " + declared.encode() + b"\r\n\r\n" + octets)
    assert (message.text if message.html is None else message.html) == text


@pytest.mark.parametrize("label", ["zlib", "bz2", "rot13", "unicode_escape", "idna", "utf-7", "", "x" * 1000])
def test_no_codec_but_those_of_mail_is_used(label: str) -> None:
    """INB-04."""
    assert charsets.codec_of(label) is None


@pytest.mark.parametrize(
    ("disposition", "filename"),
    [
        ("attachment; filename*=UTF-8''na%C3%AFve%20file.txt; filename=naive.txt", "naïve file.txt"),
        ("attachment; filename*0*=utf-8''%E4%BD; filename*1*=%A0a; filename*2=\"b c.txt\"", "你ab c.txt"),
        ('attachment; filename="=?utf-8?B?w7w=?= =?utf-8?B?LnR4dA==?="', "ü.txt"),
        ("attachment; filename=My File.pdf; size=3", "My File.pdf"),
        ('attachment; filename="C:\\temp\\x.pdf"', "x.pdf"),
        ("attachment; filename=../../etc/passwd", "passwd"),
        ("attachment; filename=caf\xe9.txt", "café.txt"),
        ('attachment; filename="open.txt', "open.txt"),
        ("attachment; FILENAME = x.txt (comment)", "x.txt"),
        ("attachment; filename*=klingon'x'a%FFb.txt", "aÿb.txt"),
        ('attachment; filename="a\\"b.txt"', 'a"b.txt'),
        ("attachment", None),
        ("attachment; filename=", None),
    ],
)
def test_file_names_in_every_form(disposition: str, filename: str | None) -> None:
    """MSG-06; receiving.md 10: RFC 2231 names, encoded words, 8 bits, paths."""
    message = mail(HEAD + mixed(PLAIN, f"Content-Type: text/csv\nContent-Disposition: {disposition}\n\nx"))
    assert [a.filename for a in message.attachments] == [filename]


@pytest.mark.parametrize(
    ("encoding", "encoded", "content"),
    [
        ("base64", "aGVsbG8=", b"hello"),
        ("BASE64 ", "aGVsbG8", b"hello"),
        ("base64", "aGVs\n!bG8=\n", b"hello"),
        ("base64", "aGVsbG8=\naGVsbG8=\n", b"hellohello"),
        ("base64", "aGVsbG8=\n____\nThis list is read-only.\n", b"hello"),
        ("base64", "a", b""),
        ("quoted-printable", "a=3D=\nb=zz=C3", b"a=b=zz\xc3"),
        ("x-uuencode", "begin 644 x\n%:&5L;&\\\n`\nend\n", b"hello"),
        ("uuencode", "%:&5L;&\\x\n", b"hello"),
        ("8bit", "a\xff", b"a\xff"),
        ("martian", "abc", b"abc"),
    ],
)
def test_transfer_encodings_that_are_broken(encoding: str, encoded: str, content: bytes) -> None:
    part = f"Content-Type: application/x\nContent-Transfer-Encoding: {encoding}\n\n{encoded}"
    message = mail(HEAD + mixed(PLAIN, part))
    assert message.content(message.attachments[0]) == content
    assert message.attachments[0].size == len(content)


def test_files_uuencoded_in_the_text_are_attachments() -> None:
    """INB-02: as mail was before MIME."""
    message = mail(HEAD + "\nbefore\nbegin 644 a/hello.txt\n%:&5L;&\\\n`\nend\nafter begin 644 x\n")
    assert [(a.filename, a.size) for a in message.attachments] == [("hello.txt", 5)]
    assert message.content(message.attachments[0]) == b"hello"
    assert (message.text or "").split() == ["before", "after", "begin", "644", "x"]


def test_flowed_text_stays_as_it_was_sent() -> None:
    """receiving.md 1: the text is decoded and nothing else."""
    message = mail(HEAD + "Content-Type: text/plain; format=flowed\n\none \ntwo\n")
    assert message.text == "one \ntwo\n"
    assert message.root.parameters["format"] == "flowed"


def test_duplicate_content_ids_are_kept() -> None:
    """receiving.md 10."""
    picture = "Content-Type: image/png\nContent-ID: <p@x>\n\nx"
    assert [a.content_id for a in mail(HEAD + mixed(HTML, picture, picture)).attachments] == ["p@x", "p@x"]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("Fri, 3 Oct 2025 10:40:11 +0200", "2025-10-03T08:40:11"),
        ("3 Oct 25 10:40 GMT", "2025-10-03T10:40:00"),
        ("Fri, 03-Oct-2025 10:40:60 EST", "2025-10-03T15:40:59"),
        ("Fri, 3 Oct 1999 10:40:11 -0000", "1999-10-03T10:40:11"),
    ],
)
def test_dates_as_they_are_really_written(text: str, instant: str) -> None:
    """RFC 5322 4.3."""
    assert mail(f"Date: {text}\n\n").date == datetime.fromisoformat(instant).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "32 Oct 2025 10:40:11 +0000", "1 Foo 2025 1:00", "9" * 5000]
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert mail(f"Date: {text}\n\n").date is None


@pytest.mark.parametrize(
    ("raw", "message_id"),
    [("<a@b>", "<a@b>"), ("a@b", "<a@b>"), ("  <a b@c> <d@e>", "<d@e>"), ("<", None), ("", None)],
)
def test_message_ids_that_are_broken(raw: str, message_id: str | None) -> None:
    """TRAP-05: `Message-ID: <` is no error."""
    assert mail(f"Message-ID: {raw}\n\n").message_id == message_id


@pytest.mark.parametrize("raw", ["a@b", "<a @b>", "< a@b >", "<a\n @b>", "<a\t@b>", "<a@b>"])
def test_a_broken_message_id_is_the_one_that_its_answers_name(raw: str) -> None:
    """inboxes.md 9.4: whatever is around an id or folded into it, both fields are read alike."""
    assert mail(f"Message-ID: {raw}\n\n").message_id == "<a@b>"
    assert mail(f"In-Reply-To: {raw}\n\n").in_reply_to == ("<a@b>",)


@pytest.mark.parametrize(
    ("raw", "ids"),
    [
        ("x@y, a@b", ("<x@y>", "<a@b>")),
        ("x@y <a@b>", ("<a@b>",)),
        ("iris@customer.example wrote on Monday", ()),
        ("<no id at all>", ()),
        ("(((( ,", ()),
    ],
)
def test_ids_without_brackets_count_where_there_is_nothing_else(raw: str, ids: tuple[str, ...]) -> None:
    assert mail(f"References: {raw}\n\n").references == ids


@pytest.mark.parametrize(("count", "width"), [(1001, 1), (5000, 1), (900, 100), (2000, 100)])
def test_of_very_many_references_the_nearest_are_read(count: int, width: int) -> None:
    """They stand at the end."""
    ids = [f"<{n}.{'r' * width}@c>" for n in range(count)]
    found = mail("References: " + "\n ".join(ids) + "\n\n").references
    assert len(found) <= 1000
    assert list(found[-100:]) == ids[-100:]


BOMBS = {
    "header lines": b"X: y\r\n" * 200_000,
    "one header of many lines": b"X: y\r\n" + b" z\r\n" * 10_000 + b"Subject: s\r\n\r\nbody",
    "header without end": b"X: " + b"y" * 2_000_000,
    "addresses": b"To: " + b"a@b.c, " * 300_000 + b"\r\n\r\n",
    "encoded words": b"Subject: " + b"=?utf-8?q?a?= " * 8_000 + b"\r\n\r\n",
    "open encoded words": b"Subject: " + b"=?utf-8?q?" * 20_000 + b"\r\n\r\n",
    "parameters": b"Content-Type: text/plain" + b"; boundary*%d=x" * 8_000 + b"\r\n\r\n",
    "semicolons": b"Content-Type: text/plain" + b"; " * 100_000 + b"\r\n\r\n",
    "parentheses": b"Content-Type: " + b"(" * 100_000 + b"\r\nTo: " + b"(" * 60_000 + b"\r\n\r\n",
    "parts": b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"--b\r\n\r\nx\r\n" * 100_000,
    "false boundaries": b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n" + b"\n--bx" * 400_000,
    "nesting": b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(5_000)
    ),
    "one boundary at every level": b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n" * 5_000,
    "empty lines": b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"\r\n" * 1_000_000,
    "padding": b"Content-Transfer-Encoding: base64\r\n\r\n" + b"YQ==" * 500_000,
    "escapes": b"Content-Transfer-Encoding: quoted-printable\r\n\r\n" + b"=" * 2_000_000,
    "padded pieces": b"Content-Transfer-Encoding: base64\r\n\r\n" + b"YQ==" * 24_000,
    "uuencode": b"\r\n" + b"begin 644 x\r\n" * 150_000,
    "uuencoded blank lines": b"Content-Transfer-Encoding: uuencode\r\n\r\n" + b"\n" * 2_000_000,
    "received": b"Received: " + b" for" * 15_000 + b"\r\n\r\n",
    "references": b"References: " + b"<a@b>" * 10_000 + b"<" * 10_000 + b"\r\n\r\n",
    "quotes": b'From: "' + b'\\"' * 30_000 + b"\r\n\r\n",
    "zeros": b"\0" * 2_000_000,
    "blanks in names of roots": b"Content-Type: multipart/mixed; boundary=m\r\n"
    + b'\r\n--m\r\nContent-Type: multipart/related; boundary=b; start="a%b<"\r\n\r\n--b\r\n\r\nx\r\n--b--'
    % (b" " * 16_000)
    * 5,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_cost_little(name: str) -> None:
    """INB-03, TRAP-05: caps before work, linear work, nothing raised."""
    began = time.process_time()
    message = parse(BOMBS[name])
    assert (message.references, message.joined_headers(), message.author, message.date) is not None
    assert (message.text, message.html, message.attachments) is not None
    assert time.process_time() - began < 1.5


def test_limits_leave_the_rest_together() -> None:
    """INB-03: excess parts stay in the raw mail and a flag says so."""
    many = mail(HEAD + mixed(*["\nx"] * (MOST_PARTS + 50)))
    assert len(list(many.root.leaves())) == MOST_PARTS
    assert not many.complete
    deep = PLAIN
    for level in range(DEEPEST + 10):
        deep = mixed(deep, boundary=f"level{level}")
    assert not mail(HEAD + deep).complete
    long = mail("X: y\n" * (MOST_FIELDS + 10) + "\nbody")
    assert (len(long.headers), long.text, long.complete) == (MOST_FIELDS, "body", False)
    wide = parse(b"X: " + b"y" * LONGEST_BLOCK + b"\r\n\r\nbody")
    assert (wide.text, wide.complete) == ("body", False)


def test_a_body_of_unusual_length_is_an_attachment() -> None:
    message = parse(b"Subject: x\r\n\r\n" + b"x" * (LONGEST_BODY + 1))
    assert message.text is None
    assert message.attachments[0].size == LONGEST_BODY + 1


def test_a_large_message_is_not_copied() -> None:
    """Issue 6: 25 MB, peak memory below four times the size, under 1.5 s."""
    file = FILE.removesuffix("aGVsbG8=") + ("QUJD" * 19 + "\n") * 110_000
    raw = (HEAD + mixed(PLAIN, file, file, file)).replace("\n", "\r\n").encode()
    began = time.process_time()
    tracemalloc.start()
    message = parse(raw)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(raw) > 25_000_000
    assert [a.size for a in message.attachments] == [110_000 * 57] * 3
    assert peak + len(raw) < 2 * len(raw)
    assert time.process_time() - began < 1.5
