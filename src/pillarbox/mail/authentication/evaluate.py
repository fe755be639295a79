"""Evaluates SPF, DKIM and DMARC of a received mail in one call (INB-10)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Literal

from pillarbox.mail.authentication import dkim_verify, dmarc, results_header
from pillarbox.mail.authentication import spf as spf_check
from pillarbox.mail.authentication.dkim_verify import Dkim
from pillarbox.mail.authentication.dmarc import Dmarc
from pillarbox.mail.authentication.spf import Spf, SpfLookup
from pillarbox.mail.message.address_fields import AddressFields

SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class SmtpSessionFacts:
    """Facts of the SMTP session: the client's address, its EHLO name, MAIL FROM ("" is the null sender)."""

    client_ip: str
    helo: str
    mail_from: str


@dataclass(frozen=True, slots=True)
class AuthenticationResults:
    """The three results of one mail."""

    spf: Spf
    dkim: tuple[Dkim, ...]
    dmarc: Dmarc

    def value(self, authserv_id: str) -> str:
        """Return the value of Authentication-Results on one line."""
        return results_header.value(authserv_id, self.spf, self.dkim, self.dmarc)

    def field(self, authserv_id: str) -> bytes:
        """Return the whole Authentication-Results field."""
        return results_header.field(authserv_id, self.spf, self.dkim, self.dmarc)


async def authenticate(
    raw: bytes,
    authors: AddressFields,
    envelope: SmtpSessionFacts,
    lookup: SpfLookup,
    *,
    seconds: int,
    receiver: str = "",
    limit: float = SECONDS,
    is_signed: bool = True,
) -> AuthenticationResults:
    """Return the results, at the latest after `limit` seconds; what DNS did not answer by then is
    a temperror.

    `is_signed` false says that the mail is known to have no DKIM signature.
    """
    try:
        async with asyncio.timeout(limit):
            sender = spf_check.check(
                envelope.client_ip,
                envelope.helo,
                envelope.mail_from,
                lookup,
                receiver=receiver,
                seconds=seconds,
            )
            if is_signed:
                spf, dkim = await asyncio.gather(sender, dkim_verify.verify(raw, lookup, seconds=seconds))
            else:
                spf, dkim = await sender, ()
            return AuthenticationResults(spf, dkim, await dmarc.evaluate(authors, spf, dkim, lookup))
    except TimeoutError:
        return _unknown(authors, envelope)


def _unknown(authors: AddressFields, envelope: SmtpSessionFacts) -> AuthenticationResults:
    reason = "DNS did not answer in time"
    identity: Literal["mailfrom", "helo"] = "mailfrom" if envelope.mail_from else "helo"
    domain = envelope.mail_from.rpartition("@")[2] if envelope.mail_from else envelope.helo
    author = dmarc.author_domain(authors)
    verdict = Dmarc("temperror", author or "", reason=reason) if author else dmarc.NO_AUTHOR
    return AuthenticationResults(Spf("temperror", identity, domain, problem=reason), (), verdict)
