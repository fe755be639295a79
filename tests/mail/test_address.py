"""The strict address parser: what it takes, what it refuses, and that it stays linear."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.mail.message.address import FORMS, AddressError, Mailbox, parse_domain, parse_mailbox
from pillarbox.mail.message.headers import addresses

ACCEPTED = {
    "user@host.example": Mailbox("user", "host.example", None),
    "  user@host.example\t": Mailbox("user", "host.example", None),
    "<user@host.example>": Mailbox("user", "host.example", None),
    "Name<user@host.example>": Mailbox("user", "host.example", "Name"),
    "Name <user@host.example>": Mailbox("user", "host.example", "Name"),
    "Name  Two\tThree < user@host.example >": Mailbox("user", "host.example", "Name Two Three"),
    "J. O'Neil & Co. [Berlin]! <j@x.example>": Mailbox("j", "x.example", "J. O'Neil & Co. [Berlin]!"),
    '"Doe, John" <j@x.example>': Mailbox("j", "x.example", "Doe, John"),
    r'"a \"b\" \\ c" <j@x.example>': Mailbox("j", "x.example", 'a "b" \\ c'),
    'John "Jo, the" Doe <j@x.example>': Mailbox("j", "x.example", "John Jo, the Doe"),
    '"" <j@x.example>': Mailbox("j", "x.example", None),
    "Jörg Müller <j@x.example>": Mailbox("j", "x.example", "Jörg Müller"),
    "山田太郎 <j@x.example>": Mailbox("j", "x.example", "山田太郎"),
    "=?utf-8?q?J=C3=B6rg?= <j@x.example>": Mailbox("j", "x.example", "Jörg"),
    "=?ISO-8859-1?Q?J=F6rg?= =?utf-8?B?TcO8?= Plain <j@x.example>": Mailbox("j", "x.example", "JörgMü Plain"),
    "=?utf-8?Q?=C3?= =?utf-8?Q?=BC?= <j@x.example>": Mailbox("j", "x.example", "ü"),
    "=?utf-8?q?Doe=2C_John?= <j@x.example>": Mailbox("j", "x.example", "Doe, John"),
    "=?rot13?q?Uryyb?= <j@x.example>": Mailbox("j", "x.example", "=?rot13?q?Uryyb?="),
    '"=?utf-8?q?J=C3=B6rg?=" <j@x.example>': Mailbox("j", "x.example", "=?utf-8?q?J=C3=B6rg?="),
    "User+Tag@HOST.Example": Mailbox("User+Tag", "host.example", None),
    "a.b.c!#$%&'*/?=^_`{|}~-@x.example": Mailbox("a.b.c!#$%&'*/?=^_`{|}~-", "x.example", None),
    '"john doe"@x.example': Mailbox("john doe", "x.example", None),
    '"john"@x.example': Mailbox("john", "x.example", None),
    '"a@b"@x.example': Mailbox("a@b", "x.example", None),
    r'Name <"a\"b>,c"@x.example>': Mailbox('a"b>,c', "x.example", "Name"),
    "jörg@x.example": Mailbox("jörg", "x.example", None),
    "user@bücher.example": Mailbox("user", "xn--bcher-kva.example", None),
    "user@BÜCHER.example": Mailbox("user", "xn--bcher-kva.example", None),
    "user@faß.example": Mailbox("user", "xn--fa-hia.example", None),
    "user@例え。テスト": Mailbox("user", "xn--r8jz45g.xn--zckzah", None),
    "user@XN--BCHER-KVA.example": Mailbox("user", "xn--bcher-kva.example", None),
    "user@a--b.r3---sn.example": Mailbox("user", "a--b.r3---sn.example", None),
    "user@1.2.3.4.example": Mailbox("user", "1.2.3.4.example", None),
}

REFUSED = [
    *("", " ", "<>", "Name", "Name <>", "user", "user@", "@host.example", "user@host", "user@.example"),
    *("user@host..example", "user@host.example.", "user@-a.example", "user@a-.example", "user@a_b.example"),
    *("user@[192.0.2.1]", "user@[IPv6:2001:db8::1]", "user@192.0.2.1", "user@host.example:25"),
    *(".user@x.example", "user.@x.example", "us..er@x.example", "us er@x.example", "user @x.example"),
    *(
        "user@ x.example",
        "a@b@x.example",
        '"a"b@x.example',
        '""@x.example',
        '"a@x.example',
        '"a\tb"@x.example',
    ),
    # Lists, groups, routes and comments.
    *("a@x.example,b@y.example", "a@x.example, b@y.example", "A <a@x.example>, B <b@y.example>"),
    *("a@x.example;b@y.example", "Team: a@x.example;", "Team: A <a@x.example>;", "undisclosed-recipients:;"),
    *("<@relay.example:a@x.example>", "@relay.example:a@x.example", "Doe, John <j@x.example>"),
    *("a@x.example (comment)", "(comment) a@x.example", "Name (x) <a@x.example>", "a(c)@x.example"),
    *("Name <a@x.example> x", "Name <<a@x.example>>", "Name a@x.example>", "a <b> <c@x.example>"),
    *("user@host.example <a@x.example>", 'Na"me <a@x.example>', "Na\\me <a@x.example>"),
    # TRAP-04.
    *("=?utf-8?q?a=40evil.test?=@good.test", "x=?utf-8?q?a?=@good.test", '"=?utf-8?q?a?="@good.test'),
    *("alice@a.test)bob@b.test", "Name <=?utf-8?q?a=40evil.test?=@good.test>"),
    # Control characters, line ends and what is not seen.
    *("a@x.example\r\nBcc: b@y.example", "Na\rme <a@x.example>", "Na\nme <a@x.example>", "a\0@x.example"),
    *("Na\u2028me <a@x.example>", "Na\x85me <a@x.example>", "Na\x7fme <a@x.example>", "\ud800 <a@x.example>"),
    *('"Na\x1bme" <a@x.example>', "=?utf-8?q?=0A?= <a@x.example>", "=?utf-8?b?DQpCY2M6?= <a@x.example>"),
    *("a\u202eb@x.example", "a\u3000b@x.example", "a\u00a0b@x.example"),
    # Domains that look like others or like more than one label.
    *("user@xn--a.example", "user@a℀b.example", "user@a＠b.example", "user@a/b.example", "user@☃.example"),
    *("user@-ü.example", "user@a\u202eb.example", "user@\u200d.example"),
]


@pytest.mark.parametrize(("text", "mailbox"), ACCEPTED.items())
def test_an_address_in_an_accepted_form_is_taken(text: str, mailbox: Mailbox) -> None:
    """MSG-10, MSG-11, emails.md 1.1."""
    assert parse_mailbox(text) == mailbox


@pytest.mark.parametrize("text", REFUSED)
def test_anything_else_is_refused_with_the_accepted_forms(text: str) -> None:
    """MSG-10, MSG-12, TRAP-04, emails.md 1.1."""
    with pytest.raises(AddressError) as refusal:
        parse_mailbox(text)
    assert refusal.value.reason.endswith(FORMS)
    assert refusal.value.reason[0].isupper()


@pytest.mark.parametrize(
    ("local", "is_taken"),
    [("a" * 64, True), ("a" * 65, False), ("ü" * 32, True), ("ü" * 33, False), (f'"{"a " * 31}"', True)],
)
def test_a_local_part_has_at_most_64_octets(local: str, is_taken: bool) -> None:
    """MSG-10."""
    assert _is_taken(f"{local}@x.example") is is_taken


def test_the_length_of_domain_and_path_is_limited() -> None:
    """MSG-10: 63 octets a label, 256 octets a path with its angle brackets."""
    label = "a" * 63
    assert _is_taken(f"u@{label}.example")
    assert not _is_taken(f"u@{label}a.example")
    domain = f"{label}.{label}.{label}.{'b' * 60}"
    assert len(domain) == 252
    assert _is_taken(f"u@{domain}")
    assert not _is_taken(f"uu@{domain}")
    with pytest.raises(AddressError):
        parse_domain(f"{label}.{label}.{label}.{label}.a")
    with pytest.raises(AddressError):
        parse_domain("ü" * 5000 + ".example")


def test_the_wire_form_quotes_only_where_it_must() -> None:
    assert parse_mailbox('"john"@x.example').addr_spec == "john@x.example"
    assert parse_mailbox(r'"a \"b\\"@x.example').addr_spec == r'"a \"b\\"@x.example'
    assert parse_mailbox('".a"@x.example').addr_spec == '".a"@x.example'
    assert parse_mailbox("jörg@bücher.example").addr_spec == "jörg@xn--bcher-kva.example"


def test_the_key_compares_without_regard_to_case_and_form() -> None:
    """MSG-10, MSG-12: compared after IDNA."""
    assert parse_mailbox("A <Ann@BÜCHER.example>").key == parse_mailbox("ann@xn--bcher-kva.example").key
    assert parse_mailbox("jo\u0308rg@x.example").key == parse_mailbox("JÖRG@x.example").key
    assert parse_mailbox("J\u030c@x.example").key == parse_mailbox("\u01f0@x.example").key
    assert parse_mailbox("a@x.example").key != parse_mailbox("a@sub.x.example").key
    # A Cyrillic look-alike is another domain.
    assert parse_mailbox("a@p\u0430ypal.example").key != parse_mailbox("a@paypal.example").key


LETTERS = st.text(
    st.sampled_from('aJj\u030c\u0307\u0331I\u0130\u03a3\u03c3\u037e\u1fef\u212aK\u1e9e.;" '), max_size=8
)


@given(LETTERS | st.text(max_size=20))
def test_a_key_is_an_address_with_the_same_key(local: str) -> None:
    try:
        key = parse_mailbox(f"{local}@x.example").key
    except AddressError:
        return
    assert parse_mailbox(key).key == key


def test_only_a_local_part_outside_ascii_needs_smtputf8() -> None:
    """MSG-11."""
    assert parse_mailbox("jörg@x.example").needs_smtputf8
    assert not parse_mailbox("Jörg <jorg@bücher.example>").needs_smtputf8


@pytest.mark.parametrize(
    "text",
    [
        *(
            '"' * 2000,
            '"\\' * 1000,
            "<" * 2000,
            "a." * 1000 + "@x.example",
            "(" * 2000,
            "=?" * 1000 + "<a@b.c>",
        ),
        *("=?utf-8?q?=41?= " * 127 + "<a@b.c>", "a@" * 1000, "a@" + "b." * 1000, '"a" ' * 500 + "<a@b.c>"),
        *("[" * 1000 + "<a@b.c>", "a" * 10_000_000, "a@" + "xn--" * 60 + ".example", "ü" * 1900 + " <a@b.c>"),
    ],
)
def test_hostile_text_takes_no_time(text: str) -> None:
    """TRAP-05: no text costs more than a few milliseconds."""
    begin = time.thread_time()
    _is_taken(text)
    assert time.thread_time() - begin < 0.25


def test_case_folding_of_protocol_text_is_ascii() -> None:
    """TRAP-12: `lower` alone would make a Kelvin sign or a dotted I another name."""
    assert parse_domain("\u212aelvin.example") == "kelvin.example"
    assert parse_domain("\u0130x.example") == "xn--ix-rub.example"
    assert not _is_taken("a@x.exa\u0660\u0661.\u0661\u0662")


LOCALS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=30)
DISPLAYS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=40)


@given(LOCALS, DISPLAYS)
def test_what_is_written_is_read_again(local: str, display: str) -> None:
    """TRAP-02, TRAP-04: parse(write(mailbox)) is the mailbox."""
    if "=?" in local:
        local = local.replace("=?", "?=")
    mailbox = Mailbox(local, "x.example", display or None)
    field = addresses("From", [mailbox]).decode("ascii")
    read = parse_mailbox(field.removeprefix("From:").replace("\r\n", "").strip())
    assert (read.local, read.domain) == (local, "x.example")
    assert (read.display or "").split() == display.split()


@given(st.text(max_size=60))
def test_any_text_is_a_mailbox_or_refused(text: str) -> None:
    try:
        mailbox = parse_mailbox(text)
    except AddressError:
        return
    assert parse_mailbox(mailbox.addr_spec) == Mailbox(mailbox.local, mailbox.domain, None)


def _is_taken(text: str) -> bool:
    try:
        parse_mailbox(text)
    except AddressError:
        return False
    return True
