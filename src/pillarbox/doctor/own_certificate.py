"""The certificate that the listeners show: does it fit its key, and how long is it valid?"""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography import x509

from pillarbox.doctor.checks import Check, Level
from pillarbox.kernel.security.certificates import WARNED_BEFORE, refuse_unusable
from pillarbox.kernel.settings.settings import ConfigError, Settings

NAME: Final = "certificate"
TITLE: Final = "The certificate of the listeners is valid"
EXPECTED: Final = f"for more than {WARNED_BEFORE.days} days, with its key, for the host name"
RENEW: Final = "Renew it: the server reads the files again by itself."


async def certificate(settings: Settings, now: datetime, *, is_known: bool) -> Check:
    """Check the certificate in the files of `--tls-cert` and `--tls-key`. `is_known`: the settings are those
    of a server."""
    if settings.tls_cert is None or settings.tls_key is None:
        found = (
            "there is none: HTTP is in the clear, and SMTP shows a self-made one"
            if is_known
            else "no server runs, and `doctor` was not told of one"
        )
        return Check(name=NAME, level=Level.SKIPPED, title=TITLE, found=found, expected=EXPECTED)
    return await asyncio.to_thread(_of_files, settings.tls_cert, settings.tls_key, settings.hostname, now)


def _of_files(chain: Path, key: Path, hostname: str, now: datetime) -> Check:
    try:
        refuse_unusable(chain, key)
        shown = x509.load_pem_x509_certificate(chain.read_bytes())
    except (ConfigError, OSError, ValueError) as fault:
        step = "Correct the files; a server that runs goes on with the last good ones."
        return Check(
            name=f"{NAME}.unusable",
            level=Level.PROBLEM,
            title=TITLE,
            found=str(fault).removesuffix("."),
            expected=EXPECTED,
            step=step,
        )
    ends = shown.not_valid_after_utc
    day = f"{ends:%Y-%m-%d}"
    if ends <= now:
        return Check(
            name=f"{NAME}.expired",
            level=Level.PROBLEM,
            title=TITLE,
            found=f"it expired on {day}",
            expected=EXPECTED,
            step=RENEW,
        )
    if shown.not_valid_before_utc > now:
        found = f"it is not valid before {shown.not_valid_before_utc:%Y-%m-%d}"
        return Check(
            name=f"{NAME}.early",
            level=Level.PROBLEM,
            title=TITLE,
            found=found,
            expected=EXPECTED,
            step="Set the clock, or wait.",
        )
    if ends - now <= WARNED_BEFORE:
        return Check(
            name=f"{NAME}.expires",
            level=Level.WARNING,
            title=TITLE,
            found=f"it expires on {day}",
            expected=EXPECTED,
            step=RENEW,
        )
    if not _names(shown, hostname):
        found = f"it is valid until {day}, but not for {hostname}"
        step = "Get one for the name of `--hostname` too: mail servers and clients compare it."
        return Check(
            name=f"{NAME}.name", level=Level.WARNING, title=TITLE, found=found, expected=EXPECTED, step=step
        )
    return Check(name=NAME, level=Level.OK, title=TITLE, found=f"it is valid until {day}", expected=EXPECTED)


def _names(shown: x509.Certificate, hostname: str) -> bool:
    """Return whether the certificate is for this name, by itself or by a wildcard (RFC 6125, 6.4.3)."""
    try:
        found = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    wildcard = "*." + hostname.partition(".")[2]
    return any(name.lower() in (hostname, wildcard) for name in found.get_values_for_type(x509.DNSName))
