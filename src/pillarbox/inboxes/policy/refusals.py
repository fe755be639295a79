"""Senders whose mail an inbox refuses at RCPT (inboxes.md 3.7)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from pillarbox.inboxes.policy import queries
from pillarbox.inboxes.policy.senders import SenderRules
from pillarbox.kernel.postgres.database import Source, TeamDb


async def refusing(source: Source, teams: Collection[UUID]) -> frozenset[UUID]:
    """Return those of the teams that have an inbox which refuses mail of some senders."""
    return await queries.refusing(source, teams)


async def refuses(db: TeamDb, addresses: Sequence[str], sender: str) -> bool:
    """Return whether the inbox at the first of these addresses that is one refuses this envelope sender."""
    listed = await queries.refused_senders(db, addresses)
    if listed is None:
        return False
    rules = SenderRules(frozenset(listed.allowed_senders), frozenset(listed.blocked_senders))
    return rules.is_blocked(sender, sender)
