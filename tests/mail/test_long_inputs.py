"""What is worked through in pieces comes out as if it were done at once."""

from __future__ import annotations

import base64
import binascii
import quopri
import random

import pytest

from pillarbox.mail.authentication import results_header
from pillarbox.mail.message import header_block, transfer_decoding, transfer_encoding

FORGED = b"Authentication-Results: mx.pillar.example; spf=pass\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "é" + "a" * 2_000_000,
        "é" + "word " * 300_000,
        ("é" + "line " * 300 + "\n") * 1000,
        "." + "\t" * 600_000 + "\n.\n",
        "é=" * 20 + "." * 1_000_000,
    ],
    ids=["one word", "one line", "lines", "tabs", "dots"],
)
def test_long_text_survives_quoted_printable(text: str) -> None:
    encoded = transfer_encoding.encode_text(text)
    assert encoded.encoding == "quoted-printable"
    assert max(map(len, encoded.body.split(b"\r\n"))) <= 76
    assert quopri.decodestring(encoded.body).replace(b"\r\n", b"\n") == text.encode()


def test_quoted_printable_of_lines_is_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer_encoding, "PIECE", 40)
    chance = random.Random(3)
    for _ in range(500):
        lines = [bytes(chance.choices(b"a .=\t\xc3\xa9", k=chance.randrange(30))) for _ in range(12)]
        octets = b"\n".join(lines)
        whole = binascii.b2a_qp(octets, istext=True).replace(b"\n", b"\r\n")
        assert b"".join(transfer_encoding._quoted_printable(octets)) == whole


@pytest.mark.parametrize("junk", [b"", b"\r\n", b" * "])
def test_long_base64_is_decoded_across_its_pieces(junk: bytes) -> None:
    octets = random.Random(5).randbytes(2_500_001)
    digits = base64.b64encode(octets)
    text = junk.join([digits[at : at + 77] for at in range(0, len(digits), 77)])
    assert transfer_decoding.decoded(text, 0, len(text), "base64") == octets


def test_the_end_of_a_long_header_is_found() -> None:
    for filler in (
        b"X-A: b\r\n" * 40_000,
        b"X-A: " + b"b" * 300_000 + b"\r\n",
        b"X-A: b" + b"\r\n c" * 90_000 + b"\r\n",
    ):
        raw = filler + b"Subject: x\r\n\r\nbody: no field\r\n"
        begin, end = header_block.extent(raw)
        assert raw[begin:end] == filler + b"Subject: x\r\n"
        block = header_block.split(raw, 0, len(raw))
        assert not block.complete
        assert raw[block.body_start :] == b"body: no field\r\n"


def test_a_forged_field_is_found_anywhere_in_a_long_header() -> None:
    for before in (0, 9_000, 9_361, 9_362, 9_363, 30_000):
        head = b"X-A: b\r\n" * before + FORGED + b"X-B: c\r\n" * 20_000
        raw = head + b"\r\n" + FORGED
        honest = results_header.without_forged(raw, "mx.pillar.example")
        assert honest == raw.replace(FORGED, b"", 1)
