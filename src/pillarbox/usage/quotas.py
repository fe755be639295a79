"""Whether a request fits in the quotas of its team, decided in the commit that accepts it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Connection, after_commit
from pillarbox.kernel.wire.problems import Problem
from pillarbox.usage import queries
from pillarbox.usage.windows import day_of, month_of, next_day, next_month, seconds_until

Note = Callable[[UUID, int, int], None]
"""Takes a team with the units of its day and of its month."""


class DailyQuotaExceeded(Problem):
    status, name = 429, "daily_quota_exceeded"

    def __init__(self, retry_after: int) -> None:
        super().__init__("You have reached your daily email quota.", {"retry-after": str(retry_after)})


class MonthlyQuotaExceeded(Problem):
    status, name = 429, "monthly_quota_exceeded"

    def __init__(self, retry_after: int) -> None:
        super().__init__("You have reached your monthly email quota.", {"retry-after": str(retry_after)})


@dataclass(frozen=True, slots=True)
class QuotaSpending:
    """The units that one request wants to spend at an instant."""

    team_id: UUID
    at: datetime
    units: int


class QuotaUsage:
    """The usage of teams, as a commit goes on."""

    def __init__(self, read: Sequence[queries.UsedUnits]) -> None:
        self._quotas = {row.team_id: (row.daily_quota, row.monthly_quota) for row in read}
        self._days = {(row.team_id, row.day): row.day_sent + row.day_received for row in read}
        self._months = {(row.team_id, month_of(row.day)): row.month_sent + row.month_received for row in read}

    def quotas(self, team_id: UUID) -> tuple[int | None, int | None]:
        """Return the daily and the monthly quota."""
        return self._quotas[team_id]

    def after(self, quota_spending: QuotaSpending) -> tuple[int, int]:
        """Return the usage of its day and its month with this added."""
        day, month = day_of(quota_spending.at), month_of(quota_spending.at)
        return (
            self._days[quota_spending.team_id, day] + quota_spending.units,
            self._months[quota_spending.team_id, month] + quota_spending.units,
        )

    def spend(self, quota_spending: QuotaSpending) -> None:
        daily, monthly = self.after(quota_spending)
        self._days[quota_spending.team_id, day_of(quota_spending.at)] = daily
        self._months[quota_spending.team_id, month_of(quota_spending.at)] = monthly


async def locked_usage(conn: Connection, spendings: Sequence[QuotaSpending]) -> QuotaUsage:
    """Return the usage of these teams, locked until the end of the transaction."""
    await queries.lock(conn, list({spending.team_id for spending in spendings}))
    keys = {(s.team_id, day_of(s.at), month_of(s.at)) for s in spendings}
    # A statement of its own, so that it sees what the holder of the lock before has committed.
    return QuotaUsage(await queries.used(conn, list(keys)))


class Quotas:
    """Judges requests of teams that have a quota. `note` gets what they have used, after the commit."""

    def __init__(self, clock: Clock, note: Note) -> None:
        self._clock = clock
        self._note = note

    async def judge(self, conn: Connection, quota_spendings: Sequence[QuotaSpending]) -> list[Problem | None]:
        """Return for each request, in order, nothing where it fits in whole, else why it does not.

        The units of those that fit are spent by this transaction, which must go on to accept them.
        """
        usage = await locked_usage(conn, quota_spendings)
        now = self._clock.now()
        found: list[Problem | None] = []
        for spending in quota_spendings:
            problem = _refusal(usage, spending, now)
            if problem is None:
                usage.spend(spending)
            found.append(problem)
        today = {
            spending.team_id: spending for spending in quota_spendings if day_of(spending.at) == day_of(now)
        }
        after_commit(conn, partial(self._report, usage, list(today.values())))
        return found

    async def used_up(self, conn: Connection, team_id: UUID, now: datetime) -> Problem | None:
        """Return why the team may not spend a single unit more; None where it may, and nothing is spent."""
        usage = QuotaUsage(await queries.used(conn, [(team_id, day_of(now), month_of(now))]))
        return _refusal(usage, QuotaSpending(team_id, now, 1), now)

    async def hold(self, conn: Connection, team_id: UUID) -> None:
        """Let nobody else ask whether something fits in the team's quotas, until the transaction ends."""
        await queries.lock(conn, [team_id])

    async def fits(self, conn: Connection, quota_spending: QuotaSpending) -> bool:
        """Return whether so many units are left now; nothing is spent. `hold` comes first."""
        keys = [(quota_spending.team_id, day_of(quota_spending.at), month_of(quota_spending.at))]
        return _refusal(QuotaUsage(await queries.used(conn, keys)), quota_spending, quota_spending.at) is None

    def _report(self, usage: QuotaUsage, spendings: Sequence[QuotaSpending]) -> None:
        for spending in spendings:
            self._note(spending.team_id, *usage.after(QuotaSpending(spending.team_id, spending.at, 0)))


def _refusal(usage: QuotaUsage, quota_spending: QuotaSpending, now: datetime) -> Problem | None:
    daily, monthly = usage.quotas(quota_spending.team_id)
    day, month = usage.after(quota_spending)
    if daily is not None and day > daily:
        return DailyQuotaExceeded(seconds_until(next_day(quota_spending.at), now))
    if monthly is not None and month > monthly:
        return MonthlyQuotaExceeded(seconds_until(next_month(quota_spending.at), now))
    return None
