"""Signed links (conventions section 14; emails.md 5.3 and 9; SEC-08)."""

from __future__ import annotations

import re
import time
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.security.tokens import Fields, Signer, TokenExpired, TokenInvalid

TEAM = UUID("0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44")
EMAIL = UUID("0199a3c2-6a41-7c02-8f11-5e0d9b7a3c45")
START = datetime(2026, 10, 3, 8, 0, 0, 123_456, tzinfo=UTC)
OLD = f"old:{b64encode(bytes(32)).decode()}"
NEW = f"new:{b64encode(bytes(range(32))).decode()}"
HOUR = timedelta(hours=1)


class SetClock:
    """A clock that stands where it was put."""

    def __init__(self, at: datetime = START) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def boottime(self) -> float:
        return self.at.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def signer(text: str = OLD, clock: SetClock | None = None) -> Signer:
    return Signer(KeyRing.parse(text), clock or SetClock())


def test_a_token_gives_back_its_fields_with_their_types() -> None:
    fields: Fields = (TEAM, b"\x00\xff", "ann@quay.example", "Grüße", b"", EMAIL)
    assert signer().read("unsubscribe", signer().issue("unsubscribe", fields, None)) == fields


@given(st.lists(st.one_of(st.uuids(), st.binary(max_size=300), st.text(max_size=50)), max_size=5))
def test_any_fields_travel(fields: list[UUID | bytes | str]) -> None:
    assert signer().read("file", signer().issue("file", tuple(fields), HOUR)) == tuple(fields)


def test_a_token_fits_into_a_url_as_it_is() -> None:
    token = signer().issue("file", (TEAM, EMAIL), HOUR)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", token)
    assert len(token) < 120


def test_a_token_holds_until_its_expiry_and_not_at_it() -> None:
    clock = SetClock()
    token = signer(clock=clock).issue("file", (TEAM,), HOUR)
    clock.at = START.replace(microsecond=122_999) + HOUR
    assert signer(clock=clock).read("file", token) == (TEAM,)
    clock.at = START.replace(microsecond=123_000) + HOUR
    with pytest.raises(TokenExpired):
        signer(clock=clock).read("file", token)


def test_a_token_may_hold_for_ever() -> None:
    """Unsubscribe links (emails.md section 9)."""
    token = signer().issue("unsubscribe", (TEAM,), None)
    assert signer(clock=SetClock(START + timedelta(days=36500))).read("unsubscribe", token) == (TEAM,)


def test_the_expiry_can_be_named() -> None:
    """So that `expires_at` on the wire and the token agree."""
    until = START + timedelta(minutes=5)
    assert signer().issue_until("file", (TEAM,), until) == signer().issue(
        "file", (TEAM,), timedelta(minutes=5)
    )


def test_a_flipped_bit_anywhere_is_invalid() -> None:
    token = signer().issue("share", (TEAM, EMAIL), HOUR)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for position, letter in enumerate(token):
        for bit in range(6):
            other = alphabet[alphabet.index(letter) ^ (1 << bit)]
            with pytest.raises(TokenInvalid):
                signer().read("share", token[:position] + other + token[position + 1 :])


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_stray_bits_after_the_last_byte_are_invalid(extra: int) -> None:
    """Each token has one spelling, whatever its length."""
    token = signer().issue("file", (b"x" * extra,), HOUR)
    accepted = 0
    for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_":
        try:
            accepted += signer().read("file", token[:-1] + last) == (b"x" * extra,)
        except TokenInvalid:
            pass
    assert accepted == 1


def mangled(change: Callable[[str], str]) -> str:
    return change(signer().issue("file", (TEAM, EMAIL), HOUR))


@pytest.mark.parametrize(
    "token",
    [
        "",
        "A",
        "AA",
        "AAAA",
        "Ω" * 40,
        "!" * 80,
        "A" * 100,
        "A" * 5000,
        mangled(lambda token: token + "="),
        mangled(lambda token: token + "\n"),
        mangled(lambda token: " " + token),
        mangled(lambda token: token[:-1]),
        mangled(lambda token: token + "A"),
        mangled(lambda token: token[:40] + "." + token[40:]),
        mangled(lambda token: token[:40] + "+/" + token[42:]),
        mangled(str.lower),
    ],
)
def test_anything_else_is_invalid(token: str) -> None:
    with pytest.raises(TokenInvalid):
        signer().read("file", token)


@given(st.text(alphabet="AQIDabz019-_=", max_size=200))
def test_random_text_is_invalid(token: str) -> None:
    with pytest.raises(TokenInvalid):
        signer().read("file", token)


def test_a_token_of_another_kind_is_invalid() -> None:
    """A share link must not open a file."""
    token = signer().issue("share", (TEAM, EMAIL), HOUR)
    for kind in ("file", "shar", "shared", "", "unsubscribe"):
        with pytest.raises(TokenInvalid):
            signer().read(kind, token)


def test_an_expired_token_that_was_changed_is_invalid_and_not_expired() -> None:
    """Only what we signed may say that it expired."""
    token = signer().issue("share", (TEAM,), HOUR)
    late = SetClock(START + timedelta(days=3))
    with pytest.raises(TokenInvalid):
        signer(clock=late).read("share", ("A" if token[-2] != "A" else "B").join((token[:-2], token[-1])))


def test_tokens_outlive_a_rotation_until_their_key_leaves_the_ring() -> None:
    """SEC-04."""
    token = signer(OLD).issue("unsubscribe", (TEAM,), None)
    assert signer(f"{NEW},{OLD}").read("unsubscribe", token) == (TEAM,)
    with pytest.raises(TokenInvalid):
        signer(NEW).read("unsubscribe", token)


def test_another_installation_cannot_sign_for_this_one() -> None:
    forged = signer(NEW.replace("new:", "old:")).issue("file", (TEAM,), HOUR)
    with pytest.raises(TokenInvalid):
        signer(OLD).read("file", forged)


def test_fields_that_do_not_fit_are_an_error_of_ours() -> None:
    with pytest.raises(ValueError, match="too long"):
        signer().issue("file", (b"x" * 4000,), None)


def test_a_long_wrong_token_costs_little() -> None:
    """API-09."""
    begun = time.thread_time()
    with pytest.raises(TokenInvalid):
        signer().read("file", "A" * 10_000_000)
    assert time.thread_time() - begun < 0.2
