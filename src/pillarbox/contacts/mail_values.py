"""The values of placeholders about contacts in mail (templates.md 6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from pillarbox.contact_properties import definitions
from pillarbox.contacts import queries
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.mail.placeholders.contact_values import ContactValues


async def mail_values(db: TeamDb, addresses: Collection[str]) -> Mapping[str, ContactValues]:
    """Return the values of the contacts that have one of these addresses, by the address as it is
    compared."""
    found = await queries.named_in_mail(db, list(addresses))
    if not found:
        return {}
    fallbacks = await definitions.fallbacks(db)
    return {
        one.address: ContactValues(
            email=one.email,
            first_name=one.first_name,
            last_name=one.last_name,
            properties=msgspec.json.decode(one.properties),
            fallbacks=fallbacks,
        )
        for one in found
    }
