"""DKIM signatures of received mail (RFC 6376 6, RFC 8301, RFC 8463; DKIM-02, DKIM-03, INB-10)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
from datetime import UTC, datetime
from functools import cache

import dkim as dkimpy  # type: ignore[import-untyped]
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.zone import Zone
from pillarbox.mail.authentication import dkim, dkim_verify
from pillarbox.mail.authentication.dkim_verify import UNSIGNED_REPLY_TO, Dkim
from pillarbox.mail.message.header_block import ONCE
from pillarbox.mail.message.parse import parse

NOW = 1_790_000_000

RFC_8463 = b"""DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :
 date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3
 DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz
 dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
""".replace(b"\n", b"\r\n")
"""The message of RFC 8463, appendix A."""

RFC_8463_ED25519 = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
RFC_8463_RSA = (
    "v=DKIM1; k=rsa; p="
    "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/"
    "J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLz"
    "BfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB"
)

HEAD = (
    b"From: Ann  <ann@harbor.example>\r\nTo: ben@quay.example\r\nSubject: Berth\r\n  twelve \r\n"
    b"Date: Sat, 03 Oct 2026 10:00:00 +0000\r\nMessage-ID: <1@harbor.example>\r\n"
)
BODIES = {
    "plain": b"Ready.\r\n",
    "empty": b"",
    "blank lines": b"\r\n\r\n",
    "trailing": b"a  b \t\r\n\t\r\n c\r\n\r\n\r\n",
    "no line end": b"Ready",
    "lone": b"a\rb\r\n\r\r\n",
}
PLAIN = HEAD + b"\r\nReady.\r\n"


@cache
def rsa_key(bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def public(key: rsa.RSAPrivateKey) -> str:
    return public_text(key.public_key())


def public_text(key: rsa.RSAPublicKey) -> str:
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode()


def ed_public() -> str:
    raw = ed_key().public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return base64.b64encode(raw).decode()


def zone(record: str | None = None, *, name: str = "s._domainkey.harbor.example") -> Zone:
    made = Zone()
    made.add(name, "TXT", record or f"v=DKIM1; p={public(rsa_key(2048))}")
    return made


async def verified(raw: bytes, records: Zone | None = None) -> tuple[Dkim, ...]:
    return await dkim_verify.verify(raw, records or zone(), seconds=NOW)


def signed(message: bytes = PLAIN, *, bits: int = 2048, **changed: str | None) -> bytes:
    """The message with a signature of ours that says what it is told to; written from the RFC anew."""
    tags: dict[str, str | None] = {
        "v": "1", "a": "rsa-sha256", "c": "relaxed/relaxed", "d": "harbor.example", "s": "s",
        "h": "from:to:subject:date:message-id:from:subject",
    }  # fmt: skip
    head, _, body = message.partition(b"\r\n\r\n")
    tags["bh"] = base64.b64encode(hashlib.sha256(relaxed_body(body)).digest()).decode()
    tags |= changed
    if length := tags.get("l"):
        cut = relaxed_body(body)[: int(length)] if length.isdigit() else b""
        tags["bh"] = base64.b64encode(hashlib.sha256(cut).digest()).decode()
    text = "; ".join(f"{name}={value}" for name, value in tags.items() if value is not None)
    own = f"DKIM-Signature: {text}; b=".encode()
    fields = re.split(rb"\r\n(?![ \t])", head)
    chosen = b""
    for name in (tags["h"] or "").split(":"):
        place = next(
            (f for f in reversed(fields) if f.partition(b":")[0].lower() == name.strip().lower().encode()),
            None,
        )
        if place is not None:
            fields.reverse()
            fields.remove(place)
            fields.reverse()
            chosen += relaxed_field(place) + b"\r\n"
    data = chosen + relaxed_field(own)
    if (tags["a"] or "").startswith("ed25519"):
        signature = ed_key().sign(hashlib.sha256(data).digest())
    else:
        signature = rsa_key(bits).sign(data, padding.PKCS1v15(), hashes.SHA256())
    return own + base64.b64encode(signature) + b"\r\n" + message


def relaxed_field(field: bytes) -> bytes:
    name, _, value = field.partition(b":")
    return name.lower() + b":" + re.sub(rb"[ \t]+", b" ", value.replace(b"\r\n", b"")).strip()


def relaxed_body(body: bytes) -> bytes:
    lines = [re.sub(rb"[ \t]+", b" ", line).rstrip(b" ") for line in body.split(b"\r\n")]
    while lines and not lines[-1]:
        lines.pop()
    return b"".join(line + b"\r\n" for line in lines)


async def test_the_message_of_rfc_8463() -> None:
    """DKIM-03: both signatures of appendix A."""
    records = zone(RFC_8463_ED25519, name="brisbane._domainkey.football.example.com")
    records.add("test._domainkey.football.example.com", "TXT", RFC_8463_RSA)
    found = await verified(RFC_8463, records)
    assert [(f.result, f.domain, f.selector, f.algorithm) for f in found] == [
        ("pass", "football.example.com", "brisbane", "ed25519-sha256"),
        ("pass", "football.example.com", "test", "rsa-sha256"),
    ]
    assert found[0].signature == "/gCrinpcQOoIfuHN"
    assert {one.domain for one in found if one.passed} == {"football.example.com"}


async def test_what_we_sign_passes() -> None:
    """DKIM-01: our own signer as peer."""
    pair = dkim.generate_rsa_key()
    at = datetime.fromtimestamp(NOW, UTC)
    header = dkim.sign(
        PLAIN, domain="harbor.example", selector="s", key=dkim.load_key(pair.private), instant=at
    )
    found = await verified(header + PLAIN, zone(f"p={pair.public}"))
    assert [(f.result, f.domain, f.identity) for f in found] == [("pass", "harbor.example", "")]


@pytest.mark.parametrize("forms", ["simple/simple", "simple/relaxed", "relaxed/simple", "relaxed/relaxed"])
@pytest.mark.parametrize("body", BODIES)
async def test_what_dkimpy_signs_passes(forms: str, body: str) -> None:
    """RFC 6376 3.4: both forms of header and body, by another implementation."""
    message = HEAD + b"\r\n" + BODIES[body]
    pem = rsa_key(2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    header, _, content = forms.encode().partition(b"/")
    signature = dkimpy.sign(message, b"s", b"harbor.example", pem, canonicalize=(header, content))
    assert [(f.result, f.reason) for f in await verified(signature + message)] == [("pass", None)]
    broken = (signature + message).replace(b"Berth", b"berth")
    assert [(f.result) for f in await verified(broken)] == ["fail"]


@pytest.mark.parametrize(
    ("changed", "result"),
    [
        ({}, "pass"),
        ({"c": None, "bh": base64.b64encode(hashlib.sha256(b"Ready.\r\n").digest()).decode()}, "fail"),
        ({"x": str(NOW + 1), "t": str(NOW)}, "pass"),
        ({"x": str(NOW - 1)}, "fail"),
        ({"x": str(NOW + 1), "t": str(NOW + 2)}, "permerror"),
        ({"x": "soon"}, "permerror"),
        ({"i": "ann@mail.harbor.example"}, "pass"),
        ({"i": "ann@HARBOR.example"}, "pass"),
        ({"i": "ann@evilharbor.example"}, "permerror"),
        ({"i": "ann@example"}, "permerror"),
        ({"h": "to:subject"}, "permerror"),
        ({"h": "From : To:x-none"}, "pass"),
        ({"l": "8"}, "pass"),
        ({"l": "3"}, "policy"),
        ({"l": "0"}, "policy"),
        ({"l": "9"}, "permerror"),
        ({"l": "-1"}, "permerror"),
        ({"v": "2"}, "neutral"),
        ({"a": "rsa-sha1"}, "policy"),
        ({"a": "rsa-md5"}, "neutral"),
        ({"c": "nofws"}, "neutral"),
        ({"q": "dns/txt:x"}, "pass"),
        ({"q": "http"}, "neutral"),
        ({"d": None}, "permerror"),
        ({"s": "a b"}, "permerror"),
        ({"s": "other"}, "permerror"),
        ({"bh": "!"}, "permerror"),
        ({"bh": "AAAA"}, "fail"),
        ({"z": "Subject:x"}, "pass"),
    ],
)
async def test_the_tags_of_a_signature(changed: dict[str, str | None], result: str) -> None:
    """RFC 6376 3.5, 6.1.1; RFC 8301: SHA-1 is refused."""
    assert [f.result for f in await verified(signed(**changed))] == [result]


@pytest.mark.parametrize(
    ("record", "result"),
    [
        ("p={}", "pass"),
        ("v=DKIM1; k=rsa; h=sha1:sha256; s=email; t=y; n=note; p={}", "pass"),
        ("v=DKIM1; k=rsa; p={}; g=*", "pass"),
        ("v=DKIM2; p={}", "permerror"),
        ("p={}; v=DKIM1", "permerror"),
        ("k=ed25519; p={}", "permerror"),
        ("h=sha1; p={}", "permerror"),
        ("s=tlsrpt; p={}", "permerror"),
        ("p=", "permerror"),
        ("p=AAAA", "permerror"),
        ("p={}x", "permerror"),
        ("hello", "permerror"),
    ],
)
async def test_the_tags_of_a_key_record(record: str, result: str) -> None:
    """RFC 6376 3.6.1; a revoked key has an empty p=."""
    found = await verified(signed(), zone(record.format(public(rsa_key(2048)))))
    assert [f.result for f in found] == [result]
    assert found[0].testing == ("t=y" in record)


async def test_a_key_may_be_bound_to_its_very_domain() -> None:
    """RFC 6376 3.6.1, t=s."""
    strict = zone(f"t=s:y; p={public(rsa_key(2048))}")
    assert [f.result for f in await verified(signed(i="a@harbor.example"), strict)] == ["pass"]
    assert [f.result for f in await verified(signed(i="a@mail.harbor.example"), strict)] == ["permerror"]


async def test_an_ed25519_key_verifies() -> None:
    """DKIM-03."""
    found = await verified(signed(a="ed25519-sha256"), zone(f"v=DKIM1; k=ed25519; p={ed_public()}"))
    assert [f.result for f in found] == ["pass"]
    broken = signed(a="ed25519-sha256").replace(b"Ready", b"ready")
    assert [f.result for f in await verified(broken, zone(f"k=ed25519; p={ed_public()}"))] == ["fail"]


async def test_weak_keys_prove_nothing() -> None:
    """DKIM-03, RFC 8301 3.2: 1024 bits or more."""
    weak = rsa.RSAPublicNumbers(65537, (1 << 767) + 12_345_678_901).public_key()
    assert [f.result for f in await verified(signed(), zone(f"p={public_text(weak)}"))] == ["policy"]
    enough = zone(f"p={public(rsa_key(1024))}")
    assert [f.result for f in await verified(signed(bits=1024), enough)] == ["pass"]


async def test_several_records_are_no_key_and_failed_dns_is_temporary() -> None:
    """RFC 6376 3.6.2.2; INB-10."""
    two = zone()
    two.add("s._domainkey.harbor.example", "TXT", f"p={public(rsa_key(2048))}")
    assert [f.result for f in await verified(signed(), two)] == ["permerror"]
    broken = zone()
    broken.fail("s._domainkey.harbor.example")
    assert [f.result for f in await verified(signed(), broken)] == ["temperror"]


@pytest.mark.parametrize(
    "changed",
    [
        b"From: Eve <eve@evil.example>\r\n" + signed(),
        signed().replace(b"Subject:", b"Subject: other\r\nSubject:"),
        signed().replace(b"Ready.", b"Ready.\r\nPay here."),
    ],
)
async def test_what_was_added_after_signing_breaks_the_signature(changed: bytes) -> None:
    """DKIM-02: oversigned fields."""
    assert [f.result for f in await verified(changed)] == ["fail"]


async def test_what_may_change_on_the_way_does_not_matter() -> None:
    """Fields above, folding and blank lines at the end in relaxed form; bare LF of a stored file."""
    raw = signed()
    assert (await verified(b"Received: by x\r\n" + raw))[0].passed
    assert (await verified(raw.replace(b"Subject: Berth\r\n  twelve \r\n", b"subject:Berth twelve\r\n")))[
        0
    ].passed
    assert (await verified(raw + b"\r\n\r\n"))[0].passed
    assert (await verified(raw.replace(b"\r\n", b"\n")))[0].passed


async def test_every_signature_is_judged_for_itself_up_to_ten() -> None:
    """RFC 6376 6.1: a broken one says nothing about the others."""
    good, records = signed(), zone()
    broken = good.replace(b"bh=", b"bh=AAAA", 1).partition(b"From:")[0]
    assert [f.result for f in await verified(broken + good, records)] == ["fail", "pass"]
    assert len(await verified(broken * 50 + good, records)) == 10
    assert await verified(PLAIN, records) == ()


async def test_a_large_body_is_hashed_without_copies_and_in_linear_time() -> None:
    """Pieces give the same hash as the whole; blank lines cost nothing."""
    line = b"the boats  lie \t at the berth \r\n"
    for body in (line * 100_000, b"\r\n" * 2_000_000 + b"x", b" \t" * 2_000_000, b"\r" * 3_000_000):
        whole = b"".join(dkim_verify.canonical_body(b"\r\n" + body, 2, "relaxed"))
        began = time.process_time()
        assert whole == dkim.relaxed_body(body)
        assert time.process_time() - began < 2


async def test_the_work_on_a_header_is_linear_in_it() -> None:
    """INB-03: `h=` that names one field again and again, and as many such fields, cost next to nothing."""
    names = ":".join(["from", *["a"] * 990])
    few = HEAD.replace(b"\r\n", b"\r\n" + b"a:\r\n" * 900, 1)
    assert (await verified(signed(few + b"\r\nReady.\r\n", h="from" + ":a" * 990)))[0].passed
    own = f"DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=harbor.example; s=s; h={names}"
    hostile = [
        (f"{own}{':a' * 20_000}; bh=AA==; b=AA==\r\n".encode(), 30, "h= names too many fields"),
        (f"{own}; bh=AA==; b=AA==\r\n".encode(), 20_000, "the header is too long"),
        (f"{own}; bh=AA==; b=AA==\r\n".encode(), 500_000, "the header is too long"),
    ]
    for field, others, reason in hostile:
        raw = field * 4 + b"From: a@harbor.example\r\n" + b"a:\r\n" * others + b"\r\nReady.\r\n"
        began = time.process_time()
        found = await verified(raw)
        assert time.process_time() - began < 1
        assert {(one.result, one.reason) for one in found} == {("neutral", reason)}


async def test_nobody_waits_while_a_large_message_is_hashed() -> None:
    """DUR-12: the loop goes on; a signature of 20 MB is right nevertheless."""
    body = b"the boats  lie \t at the berth \r\n" * 600_000
    raw = signed(HEAD + b"\r\n" + body)
    loop = asyncio.get_running_loop()
    gaps, last = [0.0], loop.time()

    def tick() -> None:
        nonlocal last
        gaps.append(loop.time() - last)
        last = loop.time()
        beat[0] = loop.call_later(0.001, tick)

    beat = [loop.call_later(0.001, tick)]
    began = loop.time()
    assert (await verified(raw))[0].passed
    took = loop.time() - began
    beat[0].cancel()
    assert max(*gaps, loop.time() - last) < took / 2


PIECES = [
    *(b"DKIM-Signature:", b" v=1;", b" a=rsa-sha256;", b" d=x.y; s=s; h=from; bh=AA==; b=AA=="),
    *(b"\r\n", b";", b"=", b"\xff", b" "),
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([b" ", b"\t", b"a", b"\r\n", b"\r", b"\n"])))
def test_the_canonical_body_is_the_signers(pieces: list[bytes]) -> None:
    body = b"".join(pieces)
    assert b"".join(dkim_verify.canonical_body(body, 0, "relaxed")) == dkim.relaxed_body(body)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES)))
def test_any_octets_get_a_result(pieces: list[bytes]) -> None:
    for found in asyncio.run(verified(b"".join(pieces))):
        assert not found.passed


# Fields that stand twice ------------------------------------------------------------------------------------

SECOND = {
    "from": b"Eve <eve@elsewhere.example>",
    "date": b"Sat, 03 Oct 2026 11:00:00 +0000",
    "message-id": b"<2@elsewhere.example>",
    "content-type": b'multipart/mixed; boundary="forged"',
    "list-unsubscribe": b"<https://elsewhere.example/>",
}


def with_every_field() -> bytes:
    """A signed message that has each field once that may stand once."""
    present = {line.partition(b":")[0].decode().lower() for line in HEAD.split(b"\r\n") if b":" in line}
    added = b"".join(
        name.title().encode() + b": " + SECOND.get(name, b"<first@harbor.example>") + b"\r\n"
        for name in sorted(ONCE - present)
        if name not in ("content-type", "content-transfer-encoding")
    )
    return HEAD + added + b"Content-Type: text/plain\r\n\r\nReady.\r\n"


@pytest.mark.parametrize("place", ["on top", "below the signature", "at the end"])
@pytest.mark.parametrize("name", sorted(ONCE))
async def test_a_field_that_stands_twice_takes_its_worth_from_a_signature(name: str, place: str) -> None:
    """DKIM-07, RFC 6376 8.15: a signature covers the lowest one, and readers may show any of them."""
    message = with_every_field()
    if name == "content-transfer-encoding":
        message = message.replace(b"\r\n\r\n", b"\r\nContent-Transfer-Encoding: 7bit\r\n\r\n", 1)
    whole = signed(message)
    [found] = await verified(whole)
    assert (found.result, found.reason) == ("pass", UNSIGNED_REPLY_TO)
    second = name.upper().encode() + b" : " + SECOND.get(name, b"Forged") + b"\r\n"
    own, _, rest = whole.partition(b"\r\nFrom:")
    forged = {
        "on top": second + whole,
        "below the signature": own + b"\r\n" + second + b"From:" + rest,
        "at the end": whole.replace(b"\r\n\r\n", b"\r\n" + second + b"\r\n", 1),
    }[place]
    [found] = await verified(forged)
    expected = ("fail", "policy") if place == "at the end" or name in ("from", "subject") else ("policy",)
    assert found.result in expected
    assert not found.passed
    if found.result == "policy":
        assert found.reason == f"{name.title()} stands more than once"


@pytest.mark.parametrize("name", sorted(ONCE - {"from", "to", "cc", "bcc"}))
def test_of_a_field_that_stands_twice_the_lowest_is_read(name: str) -> None:
    """DKIM-07: the one that a signature covers."""
    first, second = SECOND.get(name, b"<1@quay.example>"), b"<0@forged.example>"
    message = parse(
        name.encode() + b": " + second + b"\r\n" + name.title().encode() + b": " + first + b"\r\n\r\nx"
    )
    assert message.first(name) == first.decode()
    shown = (message.subject, message.message_id, message.in_reply_to, message.references, message.reply_to)
    assert "forged.example" not in repr(shown)


async def test_a_signature_that_covers_reply_to_says_nothing_of_it() -> None:
    message = HEAD + b"Reply-To: <sales@harbor.example>\r\n\r\nReady.\r\n"
    [covered] = await verified(signed(message, h="from:to:subject:reply-to"))
    [uncovered] = await verified(signed(message))
    assert (covered.result, covered.reason) == ("pass", None)
    assert (uncovered.result, uncovered.reason) == ("pass", UNSIGNED_REPLY_TO)
