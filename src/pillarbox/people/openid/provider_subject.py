"""Somebody as the provider has identified them."""

from __future__ import annotations

from dataclasses import dataclass

from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.people.openid.failures import OpenIdFailure, OpenIdReason


@dataclass(frozen=True, slots=True)
class ProviderSubject:
    """A subject of the provider. `email` is an address that the provider has verified, if there is one."""

    issuer: str
    subject: str
    email: str | None = None
    name: str | None = None
    authenticated_at: float | None = None


def verified_address(subject: ProviderSubject) -> EmailAddress:
    """Return the verified address; raises OpenIdFailure where there is none."""
    try:
        return email_address(subject.email or "")
    except NotAnAddress:
        raise OpenIdFailure(OpenIdReason.UNVERIFIED) from None
