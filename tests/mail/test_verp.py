"""OUT-15, BNC-02: bounce addresses that only we can make."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.mail.reports.verp import BouncedItem, VerpSigner

EMAIL = UUID("0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44")
OLD, NEW = bytes(32), bytes(range(32))
SIGNER = VerpSigner([OLD])


@given(st.integers(0, 2**32 - 1), st.uuids(), st.integers(0, 2**16 - 1))
def test_a_token_names_its_work_item(team: int, email: UUID, group: int) -> None:
    """Contract decision 30: email and group, in at most 64 characters."""
    token = SIGNER.token(team, email, group)
    assert SIGNER.read(token) == BouncedItem(team, email, group)
    assert len(token) <= 64
    assert re.fullmatch(r"[a-z0-9-]+", token)


def test_the_case_of_letters_does_not_matter() -> None:
    """Other servers fold local parts."""
    token = SIGNER.token(7, EMAIL, 3)
    assert SIGNER.read(token.upper()) == SIGNER.read(token.title()) == BouncedItem(7, EMAIL, 3)


def test_a_changed_character_anywhere_is_not_ours() -> None:
    """OUT-15: a forged address is ignored."""
    token = SIGNER.token(7, EMAIL, 3)
    for position in range(2, len(token)):
        for other in "abcdefghijklmnopqrstuvwxyz234567":
            if other != token[position]:
                assert SIGNER.read(token[:position] + other + token[position + 1 :]) is None


@pytest.mark.parametrize(
    "local_part",
    [
        "",
        "ann",
        "b-",
        "b-" + "a" * 56,
        "b-" + "a" * 55,
        "b-" + "a" * 57,
        "b-" + "a" * 55 + "=",
        "b-" + "a" * 55 + "1",
        "c-" + SIGNER.token(7, EMAIL, 3)[2:],
        SIGNER.token(7, EMAIL, 3)[2:],
        SIGNER.token(7, EMAIL, 3) + "\n",
        SIGNER.token(7, EMAIL, 3) + "+tag",
        "b-" + "\u212a" + SIGNER.token(7, EMAIL, 3)[3:],
        "b-" + "ı" * 56,
        "x" * 100_000,
    ],
)
def test_any_other_local_part_is_not_ours(local_part: str) -> None:
    """BNC-02; TRAP-12: the Kelvin sign is no k."""
    assert SIGNER.read(local_part) is None


def test_old_keys_still_read_and_the_first_key_signs() -> None:
    both = VerpSigner([NEW, OLD])
    assert both.read(SIGNER.token(7, EMAIL, 3)) == BouncedItem(7, EMAIL, 3)
    assert VerpSigner([NEW]).read(both.token(7, EMAIL, 3)) == BouncedItem(7, EMAIL, 3)
    assert SIGNER.read(both.token(7, EMAIL, 3)) is None


@pytest.mark.parametrize(("team", "group"), [(-1, 0), (2**32, 0), (0, -1), (0, 2**16)])
def test_numbers_that_do_not_fit_are_an_error_of_ours(team: int, group: int) -> None:
    with pytest.raises(OverflowError):
        SIGNER.token(team, EMAIL, group)


def test_a_signer_needs_a_key() -> None:
    with pytest.raises(ValueError, match="key"):
        VerpSigner([])
