"""Header fields: whatever goes in, one field comes out, and every reader reads what was meant."""

from __future__ import annotations

import base64
import email
import email.header
import email.policy
import email.utils
import locale
import os
import quopri
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pillarbox.mail.message import headers
from pillarbox.mail.message.address import Mailbox, parse_mailbox
from pillarbox.mail.message.headers import HeaderError

FORBIDDEN = ["\r", "\n", "\r\n", "\0", "\x0b", "\x1b", "\x7f", "\x85", "\x9f", "\u2028", "\u2029", "\ud800"]
ENCODED_WORD = re.compile(rb"=\?UTF-8\?[QB]\?[!->@-~]*\?=")

WORDS = st.sampled_from(
    [
        "Berth",
        "12",
        "=?UTF-8?Q?=0A?=",
        "Bcc:",
        "x@evil.test,",
        "é",
        "e\u0301",
        "👩‍👩‍👧",
        "漢字かな",
        "=?",
        "?=",
        "a" * 90,
    ]
)
SENTENCES = st.lists(WORDS, max_size=20).map(" ".join)
TEXTS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=120)
LOCALS = st.from_regex(r"[a-z]{1,12}(\.[a-z+]{1,12})?", fullmatch=True) | st.sampled_from(
    ["a b", 'q"x', "x@y", "a,b"]
)
DISPLAYS = st.none() | st.one_of(TEXTS, SENTENCES).map(lambda t: " ".join(t.split(" ")).strip() or None)
MAILBOXES = st.builds(Mailbox, LOCALS, st.sampled_from(["x.example", "xn--bcher-kva.example"]), DISPLAYS)


@given(st.one_of(SENTENCES, TEXTS))
@example("Berth =?UTF-8?Q?=0A?= Bcc: victim@evil.test")
@example("a  é  b")
@example("x" * 998)
@example("é" * 998)
def test_every_reader_reads_the_subject_that_was_written(text: str) -> None:
    """TRAP-01, MSG-05: two readers of the standard library and one of our own agree with the writer."""
    field = headers.unstructured("Subject", text)
    _assert_well_formed(field)
    meant = text.strip(" ")
    assert _own_unstructured(field) == meant
    legacy = email.message_from_bytes(field + b"\r\n", policy=email.policy.compat32)
    assert legacy.keys() == ["Subject"]
    decoded = str(email.header.make_header(email.header.decode_header(legacy["Subject"].replace("\r\n", ""))))
    assert decoded == meant
    modern = email.message_from_bytes(field + b"\r\n", policy=email.policy.default)
    assert modern.keys() == ["Subject"]
    assert modern["Subject"] == meant


@given(st.lists(MAILBOXES, min_size=1, max_size=6))
@example([Mailbox("good", "x.example", "A" * 40 + " " + "B" * 40 + ", victim@evil.test")])
@example([Mailbox("good", "x.example", 'a "quoted, \\ name" ' * 5)])
@example([Mailbox("good", "x.example", "=?UTF-8?Q?=0ABcc:_x?=")])
@example([Mailbox("good", "x.example", "é" * 300)])
def test_every_reader_reads_the_mailboxes_that_were_written(mailboxes: list[Mailbox]) -> None:
    """TRAP-02, MSG-05: parse(write(list)) == list."""
    field = headers.addresses("To", mailboxes)
    _assert_well_formed(field)
    meant = [(" ".join((m.display or "").split()), m.addr_spec) for m in mailboxes]
    assert [(" ".join(d.split()), a) for d, a in _own_addresses(field)] == meant
    value = email.message_from_bytes(field + b"\r\n", policy=email.policy.compat32)["To"].replace("\r\n", "")
    legacy = email.utils.getaddresses([value])
    names = [str(email.header.make_header(email.header.decode_header(name))) for name, _ in legacy]
    assert [(" ".join(n.split()), a) for n, (_, a) in zip(names, legacy, strict=True)] == meant
    modern = email.message_from_bytes(field + b"\r\n", policy=email.policy.default)
    assert modern.keys() == ["To"]
    # CPython 3.11 keeps the blank between neighbouring encoded words of a name, so blanks are not compared.
    read = [("".join(a.display_name.split()), a.addr_spec) for a in modern["To"].addresses]
    assert read == [("".join(display.split()), address) for display, address in meant]


def written(mailbox: Mailbox) -> str:
    """What stands in a field From of this mailbox, on one line."""
    return (
        headers.addresses("From", [mailbox]).decode("ascii").removeprefix("From:").replace("\r\n", "").strip()
    )


@given(MAILBOXES)
def test_our_own_parser_reads_what_the_writer_wrote(mailbox: Mailbox) -> None:
    """TRAP-02, TRAP-04."""
    assert parse_mailbox(written(mailbox)) == mailbox


def test_a_long_name_with_a_comma_stays_one_recipient() -> None:
    """TRAP-02, as it was reproduced."""
    mailbox = Mailbox("good", "x.example", "A" * 60 + " " + "B" * 30 + ", victim@evil.test")
    field = headers.addresses("To", [Mailbox("first", "x.example"), mailbox])
    assert [a for _, a in email.utils.getaddresses([field.decode()[4:]])] == [
        "first@x.example",
        "good@x.example",
    ]


def test_golden_fields() -> None:
    ann = Mailbox("ann", "x.example", "Ann")
    assert (
        headers.addresses("To", [ann, Mailbox("b", "y.example")])
        == b"To: Ann <ann@x.example>, b@y.example\r\n"
    )
    assert (
        headers.addresses("From", [Mailbox("j", "x.example", "Doe, J.")])
        == b'From: "Doe, J." <j@x.example>\r\n'
    )
    assert headers.addresses("From", [Mailbox("j", "x.example", "Zoë at the harbor office")]) == (
        b"From: =?UTF-8?Q?Zo=C3=AB_at_the_harbor_office?= <j@x.example>\r\n"
    )
    assert headers.addresses("From", [Mailbox("j", "x.example", "漢字")]) == (
        b"From: =?UTF-8?B?5ryi5a2X?= <j@x.example>\r\n"
    )
    assert headers.addresses("From", [Mailbox("jörg", "x.example")]) == "From: jörg@x.example\r\n".encode()
    assert headers.unstructured("Subject", "Berth 12 für dich") == (
        b"Subject: Berth 12 =?UTF-8?B?ZsO8cg==?= dich\r\n"
    )
    assert headers.unstructured("Subject", "  Ready\there ") == b"Subject: Ready here\r\n"
    assert headers.message_ids("References", ["<a@x.example>", "<b@x.example>"]) == (
        b"References: <a@x.example> <b@x.example>\r\n"
    )


def test_long_lists_fold_between_words() -> None:
    """MSG-01, MSG-05: 76 columns where white space allows it."""
    many = [Mailbox(f"user{n}", "x.example", f"User Number {n}") for n in range(40)]
    field = headers.addresses("Cc", many)
    assert max(map(len, field.split(b"\r\n"))) <= 76
    assert [
        a.addr_spec for a in email.message_from_bytes(field, policy=email.policy.default)["Cc"].addresses
    ] == [m.addr_spec for m in many]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("In-Reply-To", f"<{'a' * 150}@x.example>"),
        ("References", " ".join(f"<{'r' * 90}{n}@x.example>" for n in range(12))),
        ("List-Unsubscribe", f"<https://x.example/u/{'t' * 400}>, <mailto:u@x.example?subject=%20stop>"),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
        ("X-Entity-Ref-ID", "k" * 200),
    ],
)
def test_long_values_without_spaces_are_never_encoded(name: str, value: str) -> None:
    """TRAP-03."""
    field = headers.custom(name, value)
    assert b"=?" not in field
    assert field.replace(b"\r\n", b"").decode() == f"{name}: {value}"
    assert max(map(len, field.split(b"\r\n"))) <= 998


@pytest.mark.parametrize("bad", FORBIDDEN)
def test_no_writer_lets_a_line_end_or_control_character_through(bad: str) -> None:
    """TRAP-01: in every value and every name."""
    value = f"a{bad}Bcc: victim@evil.test"
    writers: list[Callable[[], object]] = [
        lambda: headers.unstructured("Subject", value),
        lambda: headers.structured("References", value),
        lambda: headers.custom("X-Note", value),
        lambda: headers.unstructured(f"X{bad}Bcc", "a"),
        lambda: headers.structured(f"X{bad}Bcc", "a"),
        lambda: headers.addresses(f"X{bad}Bcc", [Mailbox("a", "x.example")]),
        lambda: headers.addresses("To", [Mailbox("a", "x.example", value)]),
        lambda: headers.addresses("To", [Mailbox(value, "x.example")]),
        lambda: headers.addresses("To", [Mailbox("a", value)]),
        lambda: headers.message_ids("Message-ID", [f"<a{bad}@x.example>"]),
        lambda: headers.check_custom_header("X-Note", value),
        lambda: headers.check_custom_header(f"X{bad}", "a"),
        lambda: headers.content_id(value),
    ]
    for write in writers:
        with pytest.raises(HeaderError):
            write()


@pytest.mark.parametrize(
    "value",
    [
        *(
            "=?UTF-8?Q?=0A?=",
            "=?x-unknown?Q?=0ABcc:?=",
            "=?utf-7?Q?+AAo-?=",
            "=?utf-8?b?Cg==?=",
            "=?utf-8?q?a b=0A?=",
        ),
        *(
            "=??q?=0a?=",
            "=?utf-8?q?a?==?utf-8?q?=0D=0A?=",
            "Grüße <x.example>",
            "<" + "a" * 1200 + "@x.example>",
        ),
    ],
)
def test_fields_for_machines_refuse_what_a_reader_could_decode_into_harm(value: str) -> None:
    """TRAP-01, TRAP-03, MSG-05."""
    with pytest.raises(HeaderError):
        headers.structured("List-Id", value)


def test_fields_for_machines_may_hold_harmless_look_alikes() -> None:
    for value in ("=?utf-8?q?Gr=C3=BC=C3=9Fe?= <list.x.example>", "<https://x.example/u?t=?a&b=c>"):
        assert headers.structured("List-Help", value).decode() == f"List-Help: {value}\r\n"


RESERVED = [
    *("From", "To", "Cc", "Bcc", "Subject", "Date", "Message-ID", "MIME-Version", "Sender", "Received"),
    *("Return-Path", "Authentication-Results", "DKIM-Signature", "DKIM-Anything"),
    *("ARC-Seal", "ARC-Message-Signature", "ARC-Authentication-Results", "Content-Type"),
    *("Content-Transfer-Encoding", "Content-Disposition", "Content-ID", "Content-Description"),
    *("Content-Language", "Content-Location", "Content-MD5", "Content-Base", "Content-Foo"),
    *("Resent-From", "Resent-To", "Resent-Cc", "Resent-Bcc", "Resent-Date", "Resent-Message-ID"),
    "Resent-Sender",
]
PASSED = [
    *("In-Reply-To", "References", "List-Unsubscribe", "List-Unsubscribe-Post", "List-Id", "List-Help"),
    *("List-Post", "List-Archive", "List-Owner", "List-Subscribe", "X-Entity-Ref-ID", "X-Mailer"),
    *("X-Priority", "X-Content", "X-From", "Auto-Submitted", "Precedence", "Priority", "Importance"),
    *("Sensitivity", "Keywords", "Comments", "Organization", "User-Agent", "Autocrypt", "Reply-To"),
    *("Feedback-ID", "Bccs", "Tos", "Fromage", "Subjects", "Expires", "Disposition-Notification-To"),
]


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_are_known_in_any_case(name: str) -> None:
    """MSG-02, emails.md 1.3."""
    assert all(map(headers.is_reserved, (name, name.lower(), name.upper(), name.swapcase())))


@pytest.mark.parametrize("name", PASSED)
def test_other_names_pass(name: str) -> None:
    """MSG-02, emails.md 1.3."""
    assert not any(map(headers.is_reserved, (name, name.lower(), name.upper())))
    headers.check_custom_header(name, "value")


@pytest.mark.parametrize("name", ["", "a b", "a:", "é", "a" * 77, " a", "a\t", "a\u200b"])
def test_a_header_name_is_a_token_of_at_most_76_characters(name: str) -> None:
    """emails.md 1.3."""
    with pytest.raises(HeaderError, match="header name"):
        headers.check_custom_header(name, "value")


def test_a_custom_value_has_at_most_2000_characters() -> None:
    """emails.md 1.3."""
    for value in ("a" * 2000, "é" * 2000, "a " * 1000):
        headers.check_custom_header("X-Note", value)
        _assert_well_formed(headers.custom("X-Note", value))
        _assert_well_formed(headers.custom("X" * 76, value))
    with pytest.raises(HeaderError, match="2000"):
        headers.check_custom_header("X-Note", "a" * 2001)


def test_the_date_is_utc_and_english_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-04."""
    instant = datetime(2026, 3, 1, 1, 2, 3, 999, timezone(timedelta(hours=5, minutes=30)))
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    time.tzset()
    assert os.environ["LC_ALL"] == "de_DE.UTF-8"
    was = locale.setlocale(locale.LC_TIME)
    try:
        locale.setlocale(locale.LC_TIME, "C.UTF-8")
        assert headers.date("Date", instant) == b"Date: Sat, 28 Feb 2026 19:32:03 +0000\r\n"
    finally:
        locale.setlocale(locale.LC_TIME, was)
        monkeypatch.undo()
        time.tzset()
    with pytest.raises(HeaderError):
        headers.date("Date", instant.replace(tzinfo=None))


@given(st.datetimes(min_value=datetime(1900, 1, 1)))
def test_the_date_is_read_back(instant: datetime) -> None:
    """MSG-04."""
    value = headers.date("Date", instant.replace(tzinfo=UTC)).decode()[6:].strip()
    assert email.utils.parsedate_to_datetime(value) == instant.replace(tzinfo=UTC, microsecond=0)


def _assert_well_formed(field: bytes) -> None:
    """One field; legal lines; encoded words of at most 75 octets, of whole characters (MSG-01, MSG-05)."""
    assert field.endswith(b"\r\n")
    lines = field[:-2].split(b"\r\n")
    assert not any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines)
    assert all(line.startswith(b" ") and line.strip() for line in lines[1:])
    assert max(map(len, lines)) <= 998
    for line in lines:
        words = ENCODED_WORD.findall(line)
        assert all(len(word) <= 75 for word in words)
        assert not words or len(line) <= 76 or line is lines[0]
        for word in words:
            _decoded_word(word.decode())
    assert b"=?" not in ENCODED_WORD.sub(b"", field)


# A second reader, written from RFC 5322 and 2047 alone and sharing nothing with the code under test.


def _decoded_word(word: str) -> str:
    _, _, kind, payload, _ = word.split("?")
    if kind == "B":
        return base64.b64decode(payload, validate=True).decode()
    return quopri.decodestring(payload.replace("_", " ").encode()).decode()


def _own_unstructured(field: bytes) -> str:
    value = field.decode("ascii").partition(":")[2].replace("\r\n", "").strip(" ")
    out = ""
    after_word = False
    for blanks, word in re.findall(r"( *)([^ ]+)", value):
        is_word = re.fullmatch(r"=\?UTF-8\?[QB]\?[^? ]*\?=", word) is not None
        out += ("" if after_word and is_word else blanks) + (_decoded_word(word) if is_word else word)
        after_word = is_word
    return out


def _own_addresses(field: bytes) -> list[tuple[str, str]]:
    value = field.decode().partition(":")[2].replace("\r\n", "")
    items: list[str] = [""]
    quoted = False
    escaped = False
    for character in value:
        if character == "," and not quoted:
            items.append("")
            continue
        if escaped:
            escaped = False
        elif character == "\\" and quoted:
            escaped = True
        elif character == '"':
            quoted = not quoted
        items[-1] += character
    return [_own_mailbox(item.strip()) for item in items]


def _own_mailbox(item: str) -> tuple[str, str]:
    if not item.endswith(">"):
        return "", item
    name, _, address = item[:-1].rpartition(" <") if " <" in item else ("", "", item[1:-1])
    name = name.strip()
    if name.startswith('"'):
        return re.sub(r"\\(.)", r"\1", name[1:-1]), address
    if "=?" in name:
        return "".join(_decoded_word(word) for word in name.split()), address
    return name, address
