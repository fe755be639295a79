"""The verdicts on a received mail, as values that are stored with it and shown as they are.

Texts of the mail and of DNS in them are cut to `LONGEST` characters.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pillarbox.mail.authentication.evaluate import AuthenticationResults
from pillarbox.mail.message import header_text

LONGEST: Final = 255


class SpfVerdict(Struct, frozen=True):
    """Which domain was asked about, that of MAIL FROM or of HELO; None where that is not known any more."""

    result: str
    identity: str | None = None
    domain: str | None = None
    reason: str | None = None


class DkimVerdict(Struct, frozen=True):
    """The verdict on one signature."""

    result: str
    domain: str | None = None
    selector: str | None = None
    reason: str | None = None


class DmarcVerdict(Struct, frozen=True):
    """`policy` is what the author's domain asks for; alignment is None where it is not known any more."""

    result: str
    domain: str | None = None
    policy: str | None = None
    policy_domain: str | None = None
    spf_aligned: bool | None = None
    dkim_aligned: bool | None = None
    reason: str | None = None


class SpamVerdict(Struct, frozen=True):
    """The score is that of the scanner, if one was asked and answered."""

    is_spam: bool
    reason: str | None = None
    score: float | None = None
    required_score: float | None = None


class MailVerdicts(Struct, frozen=True):
    """All of one mail. `automatic`: by a program, a list or in bulk, or of the null sender (RFC 3834)."""

    spf: SpfVerdict
    dkim: list[DkimVerdict]
    dmarc: DmarcVerdict
    spam: SpamVerdict
    automatic: bool | None


def verdicts(results: AuthenticationResults, spam: SpamVerdict, *, automatic: bool) -> MailVerdicts:
    """Return the verdicts as they are stored."""
    spf, dmarc = results.spf, results.dmarc
    return MailVerdicts(
        spf=SpfVerdict(spf.result, spf.identity, _cut(spf.domain), _cut(spf.problem)),
        dkim=[DkimVerdict(d.result, _cut(d.domain), _cut(d.selector), _cut(d.reason)) for d in results.dkim],
        dmarc=DmarcVerdict(
            result=dmarc.result,
            domain=_cut(dmarc.domain),
            policy=dmarc.policy if dmarc.result in ("pass", "fail") else None,
            policy_domain=_cut(dmarc.policy_domain),
            spf_aligned=dmarc.aligned_spf,
            dkim_aligned=dmarc.aligned_dkim,
            reason=_cut(dmarc.reason),
        ),
        spam=spam,
        automatic=automatic,
    )


def bare_verdicts(spf: str, dkim: str, dmarc: str, spam_reason: str | None) -> MailVerdicts:
    """Return the verdicts of a mail of which the results alone were stored."""
    return MailVerdicts(
        spf=SpfVerdict(spf),
        dkim=[] if dkim == "none" else [DkimVerdict(dkim)],
        dmarc=DmarcVerdict(dmarc),
        spam=SpamVerdict(spam_reason is not None, spam_reason),
        automatic=None,
    )


def _cut(text: str | None) -> str | None:
    """Return None for the empty text; else the text without what the database does not take."""
    if not text:
        return None
    text = text[:LONGEST]
    return text if text.isprintable() else header_text.clean(text)
