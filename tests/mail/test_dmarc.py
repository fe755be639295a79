"""DMARC by RFC 9989 (DMARC-01, DMARC-02), the results as a header (AR-01), both under slow DNS (INB-10)."""

# ruff: noqa: E501 - the table holds whole records

from __future__ import annotations

import asyncio
import time

import pytest

from kit.zone import Zone
from pillarbox.mail.authentication import dmarc, results_header
from pillarbox.mail.authentication.dkim_verify import Dkim
from pillarbox.mail.authentication.dmarc import Dmarc
from pillarbox.mail.authentication.evaluate import SmtpSessionFacts, authenticate
from pillarbox.mail.authentication.spf import Spf
from pillarbox.mail.message import address_fields
from pillarbox.mail.message.address_fields import AddressFields
from pillarbox.mail.message.parse import parse


def author(address: str) -> AddressFields:
    return address_fields.read(address.encode())


def by_spf(domain: str, result: str = "pass") -> Spf:
    return Spf(result, "mailfrom", domain)  # type: ignore[arg-type]


def by_dkim(domain: str, result: str = "pass") -> Dkim:
    return Dkim(result=result, domain=domain, selector="s", identity="", algorithm="rsa-sha256", signature="")  # type: ignore[arg-type]


async def judged(zone: Zone | str, domain: str, *, spf: str = "", dkim: str = "") -> Dmarc:
    records = Zone(zone) if isinstance(zone, str) else zone
    signatures = [by_dkim(name) for name in dkim.split()]
    return await dmarc.evaluate(
        author(f"ann@{domain}"), by_spf(spf) if spf else by_spf("x", "fail"), signatures, records
    )


@pytest.mark.parametrize(
    ("name", "zone", "domain", "spf", "dkim", "result", "policy"),
    [
        ("own domain by DKIM", "_dmarc.a.test TXT v=DMARC1; p=reject", "a.test", "", "a.test", "pass", "reject"),
        ("own domain by SPF", "_dmarc.a.test TXT v=DMARC1; p=reject", "a.test", "a.test", "", "pass", "reject"),
        ("nothing aligned", "_dmarc.a.test TXT v=DMARC1; p=reject", "a.test", "b.test", "c.test", "fail", "reject"),
        ("no record", "a.test A 192.0.2.1", "a.test", "a.test", "", "none", "none"),
        ("relaxed, below", "_dmarc.a.test TXT v=DMARC1; p=reject", "a.test", "", "m.a.test", "pass", "reject"),
        ("relaxed, above", "_dmarc.a.test TXT v=DMARC1; p=reject", "m.a.test", "a.test", "", "pass", "reject"),
        ("relaxed, beside", "_dmarc.a.test TXT v=DMARC1; p=reject", "m.a.test", "", "n.a.test", "pass", "reject"),
        ("strict DKIM", "_dmarc.a.test TXT v=DMARC1; p=reject; adkim=s", "a.test", "", "m.a.test", "fail", "reject"),
        ("strict SPF", "_dmarc.a.test TXT v=DMARC1; p=reject; aspf=s", "a.test", "m.a.test", "", "fail", "reject"),
        ("strict and equal", "_dmarc.a.test TXT v=DMARC1; p=none; aspf=s", "a.test", "a.test", "", "pass", "none"),
        ("only the name ends alike", "_dmarc.a.test TXT v=DMARC1; p=reject", "a.test", "", "evila.test", "fail", "reject"),
        ("only the suffix is shared", "_dmarc.a.test TXT v=DMARC1; p=reject", "a.test", "", "test", "fail", "reject"),
        ("subdomain policy", "_dmarc.a.test TXT v=DMARC1; p=none; sp=reject", "m.a.test", "", "", "fail", "reject"),
        ("sp is not for itself", "_dmarc.a.test TXT v=DMARC1; p=none; sp=reject", "a.test", "", "", "fail", "none"),
        ("testing lowers reject", "_dmarc.a.test TXT v=DMARC1; p=reject; t=y", "a.test", "", "", "fail", "quarantine"),
        ("testing lowers quarantine", "_dmarc.a.test TXT v=DMARC1; p=quarantine; t=y", "a.test", "", "", "fail", "none"),
        ("pct is not read", "_dmarc.a.test TXT v=DMARC1; p=reject; pct=0", "a.test", "", "", "fail", "reject"),
        ("unknown tags", "_dmarc.a.test TXT v=DMARC1; x=y; p=reject; zzz", "a.test", "", "", "fail", "reject"),
        ("any order, blanks, case", "_dmarc.a.test TXT v=DMARC1 ;rua=mailto:x@y ; P = REJECT ;", "a.test", "", "", "fail", "reject"),
        ("version with other case", "_dmarc.a.test TXT v=dmarc1; p=reject", "a.test", "", "", "none", "none"),
        ("version not first", "_dmarc.a.test TXT p=reject; v=DMARC1", "a.test", "", "", "none", "none"),
        ("version goes on", "_dmarc.a.test TXT v=DMARC12; p=reject", "a.test", "", "", "none", "none"),
        ("no policy but reports", "_dmarc.a.test TXT v=DMARC1; p=x; rua=mailto:x@y", "a.test", "", "", "fail", "none"),
        ("no policy and no reports", "_dmarc.a.test TXT v=DMARC1; p=x", "a.test", "", "", "none", "none"),
        ("wrong sp spoils p", "_dmarc.a.test TXT v=DMARC1; p=reject; sp=x", "a.test", "", "", "none", "none"),
        (
            "two records are none",
            "_dmarc.a.test TXT v=DMARC1; p=reject\n_dmarc.a.test TXT v=DMARC1; p=none",
            "a.test", "", "", "none", "none",
        ),
        (
            "others beside one are no matter",
            "_dmarc.a.test TXT v=DMARC1; p=reject\n_dmarc.a.test TXT v=spf1 -all",
            "a.test", "", "", "fail", "reject",
        ),
        (
            "nearest above wins for the policy only where it is the organization",
            "_dmarc.a.test TXT v=DMARC1; p=reject\n_dmarc.m.a.test TXT v=DMARC1; p=none",
            "x.m.a.test", "", "", "fail", "reject",
        ),
        (
            "psd=n makes an organization of its own",
            "_dmarc.a.test TXT v=DMARC1; p=reject\n_dmarc.m.a.test TXT v=DMARC1; p=none; sp=quarantine; psd=n",
            "x.m.a.test", "", "a.test", "fail", "quarantine",
        ),
        (
            "below a public suffix",
            "_dmarc.test TXT v=DMARC1; p=none; sp=reject; psd=y\nb.test A 192.0.2.1",
            "b.test", "", "c.test", "fail", "reject",
        ),
        (
            "one label below a public suffix is the organization",
            "_dmarc.co.test TXT v=DMARC1; p=reject; psd=y",
            "m.b.co.test", "", "n.b.co.test", "pass", "reject",
        ),
        (
            "a domain that does not exist",
            "_dmarc.a.test TXT v=DMARC1; p=none; sp=none; np=reject",
            "gone.a.test", "", "", "fail", "reject",
        ),
        (
            "a domain that does exist",
            "_dmarc.a.test TXT v=DMARC1; p=none; sp=quarantine; np=reject\nis.a.test MX 10 mx.test",
            "is.a.test", "", "", "fail", "quarantine",
        ),
    ],
)  # fmt: skip
async def test_the_table(
    name: str, zone: str, domain: str, spf: str, dkim: str, result: str, policy: str
) -> None:
    """DMARC-01, RFC 9989 4.4, 4.7, 4.10."""
    found = await judged(zone, domain, spf=spf, dkim=dkim)
    assert (found.result, found.policy) == (result, policy), name


@pytest.mark.parametrize(
    "header",
    [
        "ann@bank.test, eve@evil.test",
        "ann@bank.test <eve@evil.test>",
        "<ann@bank.test> <eve@evil.test>",
        "<@evil.test:ann@bank.test>",
        "=?utf-8?q?ann=40bank.test?=@evil.test",
        "ann@bank.test)eve@evil.test",
        "ann@bank.test(x)@evil.test",
        "group: ann@bank.test;",
        "ann",
        "ann@[192.0.2.1]",
        "ann@localhost",
        "ann@bank.test\0.evil.test",
        "ann@bank.test\r\n\teve@evil.test",
        "",
    ],
)
async def test_an_author_that_must_not_be_guessed_fails(header: str) -> None:
    """DMARC-02: the verdict is never `pass`, whatever else is aligned."""
    message = parse(f"From: {header}\r\n\r\n".encode())
    zone = Zone("_dmarc.evil.test TXT v=DMARC1; p=none\n_dmarc.bank.test TXT v=DMARC1; p=reject")
    found = await dmarc.evaluate(
        message.authors, by_spf("evil.test"), [by_dkim("evil.test"), by_dkim("test")], zone
    )
    assert (found.result, found.policy, found.domain) in (
        ("fail", "reject", ""),
        ("pass", "none", "evil.test"),
    )
    assert found.domain != "evil.test" or message.author.endswith("<eve@evil.test>")


async def test_two_from_headers_and_a_folded_one() -> None:
    """DMARC-02."""
    two = parse(b"From: eve@evil.test\r\nFrom: ann@bank.test\r\n\r\n")
    assert dmarc.author_domain(two.authors) is None
    folded = parse(b"From:\r\n Ann\r\n <ann@Bank.Test>\r\n\r\n")
    assert dmarc.author_domain(folded.authors) == "bank.test"
    unicode = parse("From: ann@bücher.test\r\n\r\n".encode())
    assert dmarc.author_domain(unicode.authors) in ("xn--bcher-kva.test", None)


def test_a_walk_asks_at_most_eight_names() -> None:
    """RFC 9989 4.10."""
    assert dmarc.walked_names("a.mail.example.com") == [
        "a.mail.example.com",
        "mail.example.com",
        "example.com",
        "com",
    ]
    long = dmarc.walked_names("a.b.c.d.e.f.g.h.i.j.mail.example.com")
    assert len(long) == 8
    assert long[:2] == ["a.b.c.d.e.f.g.h.i.j.mail.example.com", "g.h.i.j.mail.example.com"]


async def test_dns_that_fails_is_temporary() -> None:
    """INB-10."""
    zone = Zone()
    zone.fail("_dmarc.a.test")
    assert (await judged(zone, "a.test", spf="a.test")).result == "temperror"


async def test_all_three_of_one_mail() -> None:
    """The whole of it, and its header."""
    zone = Zone(
        "a.test TXT v=spf1 ip4:192.0.2.1 -all\n_dmarc.a.test TXT v=DMARC1; p=reject\na.test MX 10 a.test"
    )
    raw = b"From: ann@a.test\r\n\r\nhello\r\n"
    envelope = SmtpSessionFacts("192.0.2.1", "mx.a.test", "ann@a.test")
    found = await authenticate(raw, parse(raw).authors, envelope, zone, seconds=1)
    assert found.value("mx.harbor.test") == (
        "mx.harbor.test; spf=pass smtp.mailfrom=a.test; dkim=none; "
        "dmarc=pass header.from=a.test policy.dmarc=reject"
    )
    assert found.field("mx.harbor.test") == (
        b"Authentication-Results: mx.harbor.test;\r\n\tspf=pass smtp.mailfrom=a.test;\r\n\tdkim=none;\r\n"
        b"\tdmarc=pass header.from=a.test policy.dmarc=reject\r\n"
    )


async def test_dns_that_never_answers_costs_the_limit_and_no_more() -> None:
    """INB-10: degrade to temperror, never block acceptance."""
    zone = Zone("a.test TXT v=spf1 -all")
    zone.hold = asyncio.Event()
    raw = b"From: ann@a.test\r\n\r\nhello\r\n"
    found = await authenticate(
        raw, parse(raw).authors, SmtpSessionFacts("192.0.2.1", "x", ""), zone, seconds=1, limit=0.01
    )
    assert (found.spf.result, found.spf.identity, found.dmarc.result) == ("temperror", "helo", "temperror")


def test_nothing_from_the_mail_can_inject_a_result() -> None:
    """AR-01: quotes, parentheses, semicolons, line ends, other scripts."""
    evil = 'x"; dmarc=pass (\r\n header.from=bank.test \u2028'
    written = results_header.value(
        "mx.harbor.test",
        Spf("fail", "mailfrom", evil, problem=evil),
        [
            Dkim(
                result="fail",
                domain=evil,
                selector=evil,
                identity=evil,
                algorithm=evil,
                signature=evil,
                reason=evil,
            )
        ],
        Dmarc("fail", evil, reason=evil),
    )
    assert written.isascii()
    assert written.isprintable()
    assert [part.split("=")[0].strip() for part in written.split(";")[1:]] == ["spf", "dkim", "dmarc"]
    assert written.count('"') % 2 == 0


def test_the_field_is_folded_before_a_line_gets_too_long() -> None:
    """MSG-01: everything in a signature has 255 octets."""
    long = "x" * 300
    field = results_header.field(
        OURS,
        Spf("fail", "mailfrom", long, problem=long),
        [
            Dkim(
                result="fail",
                domain=long,
                selector=long,
                identity=long,
                algorithm=long,
                signature=long,
                reason=long,
            )
        ]
        * 10,
        Dmarc("fail", long, reason=long),
    )
    lines = field.split(b"\r\n")
    assert max(map(len, lines)) <= 998
    assert lines.pop() == b""
    assert all(line.startswith(b"\t") for line in lines[1:])


OURS = "mx.harbor.test"


@pytest.mark.parametrize(
    "value",
    [
        "mx.harbor.test; spf=pass",
        " MX.Harbor.TEST ; dkim=pass",
        '"mx.harbor.test"; spf=pass',
        "(x(y)) mx.harbor.test(z) 1; none",
        "\r\n\tmx.harbor.test;\r\n\tspf=pass",
        "mx.harbor.test/1; none",
        '"mx.har\\bor.test"; none',
        "(open mx.harbor.test; spf=pass",
        "mx.harbor.test.; spf=pass",
        "(x)" * 10_000 + "mx.harbor.test; spf=pass",
        "",
    ],
)
def test_results_that_claim_to_be_ours_are_taken_out(value: str) -> None:
    """AR-01, RFC 8601 5."""
    raw = f"X: y\r\nAUTHENTICATION-Results: {value}\r\nFrom: a@b.c\r\n\r\nbody".encode()
    assert results_header.without_forged(raw, OURS) == b"X: y\r\nFrom: a@b.c\r\n\r\nbody"


@pytest.mark.parametrize("value", ["mx.other.test; spf=pass", "notmx.harbor.test; none", "harbor.test; none"])
def test_results_of_others_stay(value: str) -> None:
    raw = f"Authentication-Results: {value}\r\nFrom: a@b.c\r\n\r\nAuthentication-Results: {OURS}".encode()
    assert results_header.without_forged(raw, OURS) is raw


@pytest.mark.parametrize("first", ["From quay Sat Oct  3 08:00:00 2026", ">From quay", "X: y"])
def test_a_line_of_an_mbox_file_hides_nothing(first: str) -> None:
    """AR-01: readers skip such a line, so what stands behind it is the header."""
    raw = f"{first}\r\nAuthentication-Results: {OURS}; dmarc=pass\r\nFrom: a@b.c\r\n\r\nbody".encode()
    assert results_header.without_forged(raw, OURS) == f"{first}\r\nFrom: a@b.c\r\n\r\nbody".encode()


@pytest.mark.parametrize(
    "before",
    ["no colon", "no colon\r\nat all", ": no name", "b\u00f6se: x", "x y: z", "From someone", "\x00"],
)
def test_a_line_that_is_no_field_hides_no_results(before: str) -> None:
    """AR-01: whatever stands in the header, up to the empty line."""
    raw = (
        f"X: y\r\n{before}\r\nAuthentication-Results: {OURS}; dmarc=pass\r\nFrom: a@b.c\r\n\r\nbody".encode()
    )
    honest = f"X: y\r\n{before}\r\nFrom: a@b.c\r\n\r\nbody".encode()
    assert results_header.without_forged(raw, OURS) == honest
    assert parse(honest).author == "a@b.c"


def test_an_author_whose_colon_stands_apart_is_no_line_of_an_mbox_file() -> None:
    """RFC 5322 4.5."""
    assert parse(b"From : ada@quay.example\r\n\r\nbody").author == "ada@quay.example"


def test_forged_results_are_found_in_linear_time() -> None:
    """INB-03: however many comments stand in front, however many fields there are."""
    began = time.process_time()
    for text in ("() " * 500_000, "(" * 1_000_000, "\r\n ()" * 300_000):
        raw = f"Authentication-Results: {text}\r\n\r\nbody".encode()
        assert results_header.without_forged(raw, OURS) == b"\r\nbody"
    raw = b"X: y\r\n" * 300_000 + f"Authentication-Results: {OURS}\r\n\r\nbody".encode()
    assert b"harbor" not in results_header.without_forged(raw, OURS)
    assert time.process_time() - began < 2
