"""TLS towards other mail servers: how much is asked for, and what came of it (RFC 3207, RFC 7435)."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache


class TlsMode(Enum):
    """The requirement of a session on TLS."""

    NONE = "none"
    """Clear text, even where STARTTLS is offered: the second try after a broken handshake."""
    OPPORTUNISTIC = "opportunistic"
    """STARTTLS where it is offered, with any certificate; else clear text."""
    REQUIRED = "required"
    """STARTTLS must succeed, with any certificate (`tls` = `enforced` of a sending domain)."""
    VERIFIED = "verified"
    """STARTTLS must succeed with a certificate that a known authority gave to this name."""
    IMPLICIT = "implicit"
    """TLS from the first byte (RFC 8314), verified: a relay that gets our password."""

    @property
    def may_be_clear(self) -> bool:
        return self in (TlsMode.NONE, TlsMode.OPPORTUNISTIC)

    @property
    def is_verified(self) -> bool:
        return self in (TlsMode.VERIFIED, TlsMode.IMPLICIT)


@dataclass(frozen=True, slots=True)
class TlsInfo:
    """The encryption of an attempt; `verified` means chain and name were checked."""

    version: str
    cipher: str
    verified: bool


@lru_cache(maxsize=2)
def context_for(verified: bool) -> ssl.SSLContext:
    """Return a client context for TLS 1.2 and newer, without compression and renegotiation (TLS-06)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    if verified:
        context.load_default_certs()
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def info_of(ssl_object: ssl.SSLObject, verified: bool) -> TlsInfo:
    """Return what was negotiated."""
    cipher = ssl_object.cipher()
    return TlsInfo(ssl_object.version() or "", cipher[0] if cipher else "", verified)
