"""Fields of forms that name one inbox, and what a key or a program may do in it."""

from __future__ import annotations

from typing import Final

from pillarbox.api_keys.keys import InboxLimit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.inboxes import paths
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import InboxRight
from pillarbox.kernel.wire.problems import NotFound, Problem

INBOX_FIELDS: Final = ("inbox", *[f"right_{right.value}" for right in InboxRight])


async def inbox_of(db: TeamDb, fields: Form) -> InboxLimit | None:
    """Return the inbox and the rights that the form names; None where it names no right, or no address. Raise
    NotFound for an inbox that the team does not have."""
    rights = frozenset([right for right in InboxRight if fields.get(f"right_{right.value}") != ""])
    if not rights:
        return None
    try:
        return InboxLimit(await paths.find(db, fields.get("inbox").strip()), rights)
    except NotFound:
        raise
    except Problem:
        return None
