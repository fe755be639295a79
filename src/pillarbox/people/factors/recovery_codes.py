"""Codes that each work once in place of a phone. Pure.

A code has 80 random bits, so that its plain SHA-256 can be stored. It is bound to its person: the same row
of somebody else opens nothing.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import Final
from uuid import UUID

LETTERS: Final = "abcdefghijkmnpqrstuvwxyz23456789"
"""32 of them: none is taken for another."""
LENGTH: Final = 16
GROUP: Final = 4
COUNT: Final = 10


def new_codes() -> list[str]:
    """Return a new set of codes, as they are shown once."""
    return [_grouped("".join(secrets.choice(LETTERS) for _ in range(LENGTH))) for _ in range(COUNT)]


def hash_of(person_id: UUID, code: str) -> bytes:
    """Return the stored hash of a person's code. Blanks, hyphens and capitals make no difference."""
    letters = "".join(code.split()).replace("-", "").lower()
    return sha256(person_id.bytes + letters.encode("utf-8", "surrogatepass")).digest()


def _grouped(letters: str) -> str:
    return "-".join(letters[at : at + GROUP] for at in range(0, len(letters), GROUP))
