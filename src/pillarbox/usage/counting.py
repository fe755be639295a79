"""Units that are counted beside those of sent mail: emails received, and what a canceled email gives back.

Received mail is always taken. Mail that comes above a quota is marked with the number of units that would
have been enough. Its content is kept from the team until the quota is that large, or there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.combined_statement import Statement
from pillarbox.kernel.postgres.database import Connection, Source, TeamDb
from pillarbox.kernel.wire.problems import Problem
from pillarbox.usage import queries
from pillarbox.usage.quotas import QuotaSpending, QuotaUsage, locked_usage


class EmailAboveQuota(Problem):
    status, name = 403, "email_above_quota"

    def __init__(self) -> None:
        super().__init__("This email was received above your quota. Raise the quota to see its content.")


class CountedArrival(NamedTuple):
    """A received email."""

    team_id: UUID
    id: UUID
    at: datetime


async def give_back(db: TeamDb, email_id: UUID) -> None:
    """Give back the units of an email that this transaction has canceled."""
    await queries.give_back(db, email_id)


def copies_given_back(emails: Sequence[tuple[UUID, UUID]]) -> Statement:
    """Return the statement that gives back the units of these emails (team, email), each of one recipient, in
    the transaction that cancels them. It comes behind what that writes to them: whoever cancels locks in this
    order."""
    return queries.give_back_copies(emails)


async def refuse_above(db: TeamDb, email_id: UUID) -> None:
    """Raise 403 where the content of this received email is kept from the team."""
    if await queries.is_above(db, email_id):
        raise EmailAboveQuota


async def stored_octets(source: Source, teams: Collection[UUID]) -> dict[UUID, int]:
    """Return how much received mail each of these teams has; those that have none may be missing."""
    return await queries.stored(source, list(teams))


async def mark_above(conn: Connection, arrived: Sequence[CountedArrival]) -> None:
    """Mark what is above its team's quota of emails whose rows this transaction has inserted and counted; to
    be called last in it, because the counts of their teams stay locked until its end."""
    if not arrived:
        return
    spendings = [QuotaSpending(mail.team_id, mail.at, 1) for mail in arrived]
    usage = await locked_usage(conn, spendings)
    # What was read has them all already: subtract them first.
    for spending in spendings:
        usage.spend(QuotaSpending(spending.team_id, spending.at, -1))
    rows = []
    for mail, spending in zip(arrived, spendings, strict=True):
        usage.spend(spending)
        above = _above(usage, spending)
        if above != (None, None):
            rows.append((mail.team_id, mail.id, *above))
    if rows:
        await queries.mark_above(conn, rows)


def _above(usage: QuotaUsage, spent: QuotaSpending) -> tuple[int | None, int | None]:
    """Return the units of the day and of the month, each where that is more than the quota."""
    daily, monthly = usage.quotas(spent.team_id)
    day, month = usage.after(QuotaSpending(spent.team_id, spent.at, 0))
    return (
        day if daily is not None and day > daily else None,
        month if monthly is not None and month > monthly else None,
    )
