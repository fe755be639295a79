"""The exchanges of AUTH (RFC 4954, 4616, and LOGIN as clients know it): lines in, what to do next out."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp.answers import SessionReply

LONGEST_RESPONSE = 12_288
"""Octets of one response, and of an AUTH command with its initial one (RFC 4954, 4)."""


class Prompt(NamedTuple):
    """Go on with a response to this text."""

    text: bytes

    @property
    def wire(self) -> bytes:
        return b"334 " + base64.b64encode(self.text) + b"\r\n"


class LoginCredentials(NamedTuple):
    """The client's name and its proof."""

    user: str
    password: str


Step = Prompt | LoginCredentials | SessionReply


class Plain:
    """`authzid NUL authcid NUL password` in one response; a different authorization identity is ignored."""

    def begin(self) -> Step:
        return Prompt(b"")

    def take(self, response: bytes) -> Step:
        parts = response.split(b"\0")
        return _credentials(parts[1], parts[2]) if len(parts) == 3 else say.BAD_RESPONSE


class LoginMechanism:
    """The name in one response, the password in the next."""

    def __init__(self) -> None:
        self._name: bytes | None = None

    def begin(self) -> Step:
        return Prompt(b"Username:")

    def take(self, response: bytes) -> Step:
        if self._name is not None:
            return _credentials(self._name, response)
        self._name = response
        return Prompt(b"Password:")


Exchange = Plain | LoginMechanism
MECHANISMS: dict[bytes, type[Plain] | type[LoginMechanism]] = {b"PLAIN": Plain, b"LOGIN": LoginMechanism}


def next_step(exchange: Exchange, line: bytes) -> Step:
    """Take this line of the client and return the next step; an `SessionReply` ends the exchange."""
    if line == b"*":
        return say.CANCELED
    try:
        return exchange.take(b"" if line == b"=" else base64.b64decode(line, validate=True))
    except (binascii.Error, ValueError):
        return say.BAD_RESPONSE


def _credentials(user: bytes, password: bytes) -> LoginCredentials:
    return LoginCredentials(user.decode("utf-8", "replace"), password.decode("utf-8", "replace"))
