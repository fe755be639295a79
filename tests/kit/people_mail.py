"""What the installation mails to people, as its recipients read it: stored sealed until it is delivered."""

from __future__ import annotations

import json
from typing import NamedTuple

from kit.world import World
from pillarbox.emails.own_mail.sealed_queries import SEALED_MAILS
from pillarbox.kernel.security.secrets import KeyRing

MAILS = """
    SELECT e.id, e.to_list::text AS to_list, e.subject, s.text
      FROM emails e
      JOIN sealed_mails s ON s.team_id = e.team_id AND s.email_id = e.id
     ORDER BY e.id
"""


class PersonalMail(NamedTuple):
    """A mail to one person."""

    to: str
    subject: str
    text: str


async def mail_to_people(pillarbox: World) -> list[PersonalMail]:
    """Return all that is still to be delivered, the oldest first."""
    ring = pillarbox.app.need(KeyRing)
    return [
        PersonalMail(
            json.loads(row["to_list"])[0],
            row["subject"],
            ring.open(row["text"], SEALED_MAILS.context(row["id"])).decode(),
        )
        for row in await pillarbox.pool.fetch(MAILS)
    ]
