"""Whether a report about several recipients may suppress one of them (docs/decisions/0021).

Each of them has the bounce address of the group, and each could forge a report about the others. The content
of a report proves nothing then; the host that it comes from proves a little more.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pillarbox.mail.authentication import spf
from pillarbox.mail.authentication.spf import SpfLookup
from pillarbox.receiving.reports.bounce_mail import BounceMail

SECONDS: Final = 10.0


async def is_from_authorised_host(mail: BounceMail, domain: str, lookup: SpfLookup) -> bool:
    """Whether the report has the null sender and came from a host that may send mail of this domain by its
    SPF record: people with a mailbox there cannot send that. False where it cannot be found out."""
    if "@" in mail.sender or not mail.client:
        return False
    try:
        async with asyncio.timeout(SECONDS):
            found = await spf.check(mail.client, mail.helo, f"postmaster@{domain}", lookup)
    except TimeoutError:
        return False
    return found.result == "pass"
