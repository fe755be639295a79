"""SEC-01, SEC-04, SEC-08: the key ring and new API keys."""

from __future__ import annotations

import re
import secrets
from base64 import b64encode
from collections import Counter
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.kernel.ids import BASE62
from pillarbox.kernel.security.secrets import (
    API_KEY,
    KeyMissing,
    KeyRing,
    SealBroken,
    hash_api_key,
    new_api_key,
)

OLD = f"old:{b64encode(bytes(range(32))).decode()}"
NEW = f"new:{b64encode(bytes(range(1, 33))).decode()}"


def test_what_is_sealed_opens_for_its_record() -> None:
    """SEC-04."""
    ring = KeyRing.parse(OLD)
    sealed = ring.seal(b"private key", b"dkim_keys/1")
    assert ring.open(sealed, b"dkim_keys/1") == b"private key"
    assert b"private key" not in sealed


def test_a_seal_copied_to_another_record_does_not_open() -> None:
    """SEC-04."""
    ring = KeyRing.parse(OLD)
    sealed = ring.seal(b"private key", b"dkim_keys/1")
    with pytest.raises(SealBroken):
        ring.open(sealed, b"dkim_keys/2")


def test_a_flipped_bit_anywhere_is_noticed() -> None:
    ring = KeyRing.parse(OLD)
    sealed = ring.seal(b"x", b"c")
    for position in range(len(sealed) * 8):
        damaged = bytearray(sealed)
        damaged[position // 8] ^= 1 << position % 8
        with pytest.raises((SealBroken, KeyMissing)):
            ring.open(bytes(damaged), b"c")


@given(st.binary(max_size=80))
def test_any_other_bytes_are_a_broken_seal(junk: bytes) -> None:
    with pytest.raises((SealBroken, KeyMissing)):
        KeyRing.parse(OLD).open(junk, b"c")


@pytest.mark.parametrize("cut", range(34))
def test_a_cut_seal_is_broken(cut: int) -> None:
    ring = KeyRing.parse(OLD)
    sealed = ring.seal(b"", b"c")
    assert len(sealed) == 2 + 3 + 12 + 16
    with pytest.raises(SealBroken):
        ring.open(sealed[:cut] if cut < 33 else sealed + b"\0", b"c")


def test_sealing_twice_gives_different_bytes() -> None:
    ring = KeyRing.parse(OLD)
    assert ring.seal(b"same", b"c") != ring.seal(b"same", b"c")


def test_rotation_opens_old_seals_and_seals_with_the_new_key() -> None:
    """SEC-04: put the new key in front, seal again what is old, drop the old key."""
    before, during, after = KeyRing.parse(OLD), KeyRing.parse(f"{NEW},{OLD}"), KeyRing.parse(NEW)
    sealed = before.seal(b"secret", b"c")
    assert during.open(sealed, b"c") == b"secret"
    assert not during.is_current(sealed)
    again = during.seal(during.open(sealed, b"c"), b"c")
    assert during.is_current(again)
    assert after.open(again, b"c") == b"secret"
    with pytest.raises(KeyMissing, match="'old'"):
        after.open(sealed, b"c")


def test_a_key_id_with_other_key_bytes_does_not_open() -> None:
    sealed = KeyRing.parse(OLD).seal(b"secret", b"c")
    with pytest.raises(SealBroken):
        KeyRing.parse(NEW.replace("new:", "old:")).open(sealed, b"c")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no key"),
        (" , ", "no key"),
        ("justbase64", "id:base64"),
        (":" + b64encode(bytes(32)).decode(), "id:base64"),
        ("two words:" + b64encode(bytes(32)).decode(), "id:base64"),
        ("a:%%%", "not valid base64"),
        ("a:" + b64encode(bytes(31)).decode(), "31 bytes"),
        ("a:" + b64encode(bytes(33)).decode(), "33 bytes"),
        ("a:", "0 bytes"),
        (f"{OLD},{OLD}", "twice"),
    ],
)
def test_a_ring_that_cannot_be_read_says_why_and_shows_no_key(text: str, says: str) -> None:
    """SEC-04: the start fails on a missing key."""
    with pytest.raises(ValueError, match=says) as failure:
        KeyRing.parse(text)
    encoded = text.partition(":")[2]
    assert not encoded or encoded not in str(failure.value)


def test_a_generated_ring_can_be_read_and_is_new_each_time() -> None:
    """SEC-08."""
    first, second = KeyRing.generate_text(), KeyRing.generate_text()
    assert first != second
    assert KeyRing.parse(first + "\n").seal(b"x", b"c")


def test_a_ring_never_shows_its_keys() -> None:
    """SEC-05."""
    assert repr(KeyRing.parse(f"{NEW},{OLD}")) == "KeyRing(new, old)"


def test_mac_keys_differ_by_purpose_and_by_key() -> None:
    ring = KeyRing.parse(f"{NEW},{OLD}")
    keys = [ring.mac_key(p, k) for p in ("files", "share") for k in ("new", "old")]
    assert len(set(keys)) == 4
    assert all(len(key) == 32 for key in keys)
    assert ring.mac_key("files") == ring.mac_key("files", "new") == KeyRing.parse(NEW).mac_key("files")
    assert ring.mac_keys("files") == (keys[0], keys[1])
    with pytest.raises(KeyMissing):
        ring.mac_key("files", "gone")


def test_an_api_key_has_the_form_of_the_contract() -> None:
    """SEC-01; conventions section 3."""
    keys = {new_api_key() for _ in range(2000)}
    assert len(keys) == 2000
    assert all(re.fullmatch(r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}", key) for key in keys)
    assert all(API_KEY.fullmatch(key) for key in keys)


def test_every_character_of_an_api_key_is_equally_likely() -> None:
    """SEC-01: chi-square over 62 symbols stays below the 1e-9 quantile for 61 degrees of freedom."""
    counts = Counter("".join(new_api_key()[3:].replace("_", "") for _ in range(4000)))
    expected = 4000 * 32 / 62
    assert sum((counts[symbol] - expected) ** 2 / expected for symbol in BASE62) < 150
    assert set(counts) == set(BASE62)


def test_the_whole_range_of_keys_is_used() -> None:
    assert new_api_key(lambda top: 0) == "re_00000000_" + "0" * 24
    assert new_api_key(lambda top: top - 1) == "re_zzzzzzzz_" + "z" * 24


def test_a_key_is_stored_as_its_sha256() -> None:
    """SEC-01."""
    key = new_api_key(secrets.randbelow)
    assert hash_api_key(key) == sha256(key.encode()).digest()
    assert len({hash_api_key(text) for text in ("", "é", "\udc80", "\\udc80")}) == 4
