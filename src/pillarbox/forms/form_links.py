"""The addresses of a form and of a confirmation.

That of a form is public: the team and the form. That of a confirmation has 128 random bits besides, of which
the database has the SHA-256: who reads the database cannot confirm for anybody.
"""

from __future__ import annotations

import binascii
import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NamedTuple
from uuid import UUID

SECRET: Final = 16
FORM_LENGTH: Final = 43
TOKEN_LENGTH: Final = 64


class FormLink(NamedTuple):
    """The form that an address names."""

    team_id: UUID
    form_id: UUID


class ConfirmationLink(NamedTuple):
    """The sign-up that a link to confirm names, and the digest of its secret."""

    team_id: UUID
    sign_up_id: UUID
    digest: bytes


def form_path(team_id: UUID, form_id: UUID) -> str:
    """Return the path of the hosted page of a form."""
    return f"/sign-up/{_encoded(team_id.bytes + form_id.bytes)}"


def confirmation_path(team_id: UUID, sign_up_id: UUID, secret: bytes) -> str:
    """Return the path of the page to confirm a sign-up."""
    return f"/sign-up/confirm/{_encoded(team_id.bytes + sign_up_id.bytes + secret)}"


def digest_of(secret: bytes) -> bytes:
    """Return what the database keeps of a secret."""
    return hashlib.sha256(secret).digest()


def form_of(text: str) -> FormLink | None:
    """Return the form that a path names; None of another text."""
    found = _decoded(text, FORM_LENGTH)
    return None if found is None else FormLink(UUID(bytes=found[:16]), UUID(bytes=found[16:]))


def confirmation_of(text: str) -> ConfirmationLink | None:
    """Return the sign-up that a path names; None of another text."""
    found = _decoded(text, TOKEN_LENGTH)
    if found is None:
        return None
    return ConfirmationLink(UUID(bytes=found[:16]), UUID(bytes=found[16:32]), digest_of(found[32:]))


def _encoded(octets: bytes) -> str:
    return urlsafe_b64encode(octets).decode("ascii").rstrip("=")


def _decoded(text: str, length: int) -> bytes | None:
    """Return the octets of a text of this length, if it is the one way to write them."""
    if len(text) != length or not text.isascii():
        return None
    try:
        octets = urlsafe_b64decode(text + "=" * (-length % 4))
    except (binascii.Error, ValueError):
        return None
    return octets if _encoded(octets) == text else None
