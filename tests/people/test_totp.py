"""One-time passwords of a phone, by the vectors of the RFCs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from pillarbox.people.factors.totp import as_text, as_uri, code_of, new_seed, step_at, step_of

SEED = b"12345678901234567890"

HOTP = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"]
"""RFC 4226, appendix D."""

TOTP = [
    ("1970-01-01T00:00:59", "94287082"),
    ("2005-03-18T01:58:29", "07081804"),
    ("2005-03-18T01:58:31", "14050471"),
    ("2009-02-13T23:31:30", "89005924"),
    ("2033-05-18T03:33:20", "69279037"),
    ("2603-10-11T11:33:20", "65353130"),
]
"""RFC 6238, appendix B, for SHA-1: eight digits, of which phones show the last six."""

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def test_the_codes_of_counters() -> None:
    """SEC-02."""
    assert [code_of(SEED, counter) for counter in range(10)] == HOTP


@pytest.mark.parametrize(("at", "code"), TOTP)
def test_the_codes_of_instants(at: str, code: str) -> None:
    """SEC-02."""
    instant = datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert code_of(SEED, step_at(instant)) == code[2:]
    assert step_of(SEED, code[2:], instant, 0) == step_at(instant)


@pytest.mark.parametrize(
    ("seconds", "is_taken"), [(-60, False), (-30, True), (0, True), (30, True), (60, False)]
)
def test_a_phone_may_be_one_step_off(seconds: int, is_taken: bool) -> None:
    step = step_at(NOON)
    assert (step_of(SEED, code_of(SEED, step), NOON + timedelta(seconds=seconds), 0) == step) is is_taken


def test_a_step_that_was_used_and_all_before_it_are_over() -> None:
    step = step_at(NOON)
    assert step_of(SEED, code_of(SEED, step), NOON, step) is None
    assert step_of(SEED, code_of(SEED, step - 1), NOON, step) is None
    assert step_of(SEED, code_of(SEED, step + 1), NOON, step) == step + 1


@pytest.mark.parametrize("code", ["", "12345", "1234567", "abcdef", "１２３４５６", "-12345"])
def test_what_is_no_code_matches_nothing(code: str) -> None:
    assert step_of(SEED, code, NOON, 0) is None


def test_what_a_phone_is_given() -> None:
    text, uri = as_text(SEED), urlsplit(as_uri(SEED, "ada+b@harbor.example", "Pillar box"))
    assert text == "GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ"
    assert (uri.scheme, uri.netloc, uri.path) == ("otpauth", "totp", "/Pillar%20box:ada%2Bb@harbor.example")
    assert parse_qs(uri.query) == {"secret": [text.replace(" ", "")], "issuer": ["Pillar box"]}
    assert len(new_seed()) == 20
    assert new_seed() != new_seed()
