"""Insights of a stored email."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import msgspec

from pillarbox.domains.senders import Senders
from pillarbox.emails.insights import queries
from pillarbox.emails.insights.queries import InspectedEmail
from pillarbox.emails.insights.rules import Insight, ReadEmail, judged
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large

BULK_RECIPIENTS: Final = 20
"""With so many recipients an email is bulk."""

_headers = msgspec.json.Decoder(list[tuple[str, str]]).decode


async def insights_of(db: TeamDb, senders: Senders, email_id: UUID) -> list[Insight] | None:
    """Return the insights of an email, what needs attention first; None where there is no such email."""
    stored = await queries.inspected(db, email_id)
    if stored is None:
        return None
    domain = await senders.find(db.team_id, stored.domain_name)
    signs_for = domain.name if domain is not None and domain.may_send else None
    size = len(stored.html or "")
    return await in_thread_if_large(size, lambda: judged(read(stored, signs_for)))


def read(stored: InspectedEmail, signs_for: str | None) -> ReadEmail:
    """Return the stored email as the rules see it."""
    pairs = [] if stored.headers is None else _headers(stored.headers)
    names = {name.lower(): value for name, value in pairs}
    is_list = "list-id" in names or names.get("precedence", "").lower() in ("bulk", "list")
    has_own = stored.topic_id is not None or stored.broadcast_id is not None
    return ReadEmail(
        sender_host=stored.domain_name,
        sender_name=stored.sender.rpartition("@")[0].rpartition("<")[2].strip().lower(),
        signs_for=signs_for,
        html=stored.html,
        text=stored.text,
        headers=names,
        is_bulk=has_own or is_list or stored.recipients >= BULK_RECIPIENTS,
        has_own_unsubscribe=has_own,
    )
