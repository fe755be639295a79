"""Settling: outcomes of many items in one transaction (architecture 2.5).

A settlement waits while the database is away or out of room, and is tried again: the other side has the mail
and only this process knows. One that the database refuses for another reason is given up after ten tries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.delivery import prometheus, queries
from pillarbox.delivery.items import Item, Key
from pillarbox.delivery.reports import AttemptSettlement
from pillarbox.delivery.smtp.known_domains import KnownDomains
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.combined_statement import (
    ExpectedRowCount,
    RowCountMismatch,
    Statement,
    execute_all,
)
from pillarbox.kernel.postgres.database import OUTAGES, RETRIED, Connection, transaction
from pillarbox.kernel.postgres.group_commit import GroupCommit
from pillarbox.kernel.process import faults
from pillarbox.kernel.work.keyed_commits import KeyedCommits
from pillarbox.suppressions import changes
from pillarbox.suppressions.changes import SuppressionCause
from pillarbox.timeline.record import FirstEventConflict, Timeline
from pillarbox.timeline.rules import EventDetail, EventKind, TimelineEntry
from pillarbox.usage import counting
from pillarbox.webhooks.publish import Publisher

log = get("delivery")

KeepCaptured = Callable[[Connection, Sequence[AttemptSettlement]], Awaitable[None]]
"""Stores the messages that the route `capture` keeps, in the settling transaction."""

PAUSE = 0.5
LIGHT = 4
"""A settlement that makes more deliveries to webhooks is committed in the queue of its team."""

MOST_ROWS = 2000
"""So many deliveries to webhooks go into one commit, unless one settlement alone makes more."""

ROW_WEIGHT = 4096

MOST_REFUSALS = 10
"""How often a settlement that the database refuses, for a reason nobody foresaw, is offered to it."""


async def keep_nothing(_conn: Connection, _settled: Sequence[AttemptSettlement]) -> None:
    """Do nothing, for routes other than `capture`."""


class _NeedsTeamQueue(Exception):  # noqa: N818 - it is committed in the queue of its team
    """The team has more webhooks than was known: nothing of this settlement was written."""


class AttemptSettler:
    """Writes settlements; `settle` returns when the outcome is committed."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        timeline: Timeline,
        ids: Ids,
        publisher: Publisher,
        clock: Clock,
        owner: UUID,
        keep: KeepCaptured = keep_nothing,
        known_domains: KnownDomains | None = None,
    ) -> None:
        self._pool = pool
        self._timeline = timeline
        self._ids = ids
        self._publisher = publisher
        self._clock = clock
        self._owner = owner
        self._keep = keep
        self._known_domains = known_domains
        self._failures = LoopFailures("delivery.settle")
        self.is_out = False
        """Whether the last outcome could not be stored for an outage: nothing new is to begin meanwhile."""

        self._commits: GroupCommit[AttemptSettlement, None] = GroupCommit(
            self._flush,
            kind="settle",
            flushers=1,
            weigh=lambda s: s.weight,
            most_waiting=1 << 40,
            shared=RETRIED,
        )
        self._team_commits: KeyedCommits[AttemptSettlement, None] = KeyedCommits(
            self._flush_team,
            kind="settle webhooks",
            weigh=lambda s: max(s.weight, self._rows(s) * ROW_WEIGHT),
            most_weight=MOST_ROWS * ROW_WEIGHT,
            at_once=1,
            most_waiting=1 << 40,
            shared=RETRIED,
        )

    async def settle(self, settlement: AttemptSettlement) -> None:
        """Return when the settlement is committed, however long the database is away."""
        refusals = 0
        while True:
            try:
                if self._is_heavy(settlement):
                    await self._team_commits.submit(settlement.item.team_id, settlement)
                else:
                    await self._commits.submit(settlement)
                self._failures.succeeded()
                self.is_out = False
                return
            except _NeedsTeamQueue:
                continue
            except RETRIED as trouble:
                self.is_out = self.is_out or isinstance(trouble, OUTAGES)
                self._failures.failed(trouble, email=settlement.item.email_id)
            except Exception as trouble:
                # Given up at last: a settlement that waits for ever would hold its slot and its lease.
                refusals += 1
                if refusals == MOST_REFUSALS:
                    raise
                self._failures.failed(trouble, email=settlement.item.email_id, refusals=refusals)
            await asyncio.sleep(PAUSE)

    async def _flush(self, batch: Sequence[AttemptSettlement]) -> Sequence[BaseException | None]:
        """Commit a batch of many teams; what turns out to be heavy is left to the queue of its team."""
        await self._learn(batch)
        light = [s for s in batch if not self._is_heavy(s)]
        if light and not await self._settle_fast(light):
            await self._learn(light, anew=True)
            light = [s for s in light if not self._is_heavy(s)]
            if light:
                await self._settle_general(light)
        prometheus.settled(light)
        written = {id(s) for s in light}
        return [None if id(s) in written else _NeedsTeamQueue() for s in batch]

    async def _flush_team(self, batch: Sequence[AttemptSettlement]) -> Sequence[None]:
        """Commit a batch of one team."""
        await self._learn(batch)
        if not await self._settle_fast(batch):
            await self._settle_general(batch)
        prometheus.settled(batch)
        return [None] * len(batch)

    # Deliveries to webhooks ------------------------------------------------------------------------

    def _rows(self, settlement: AttemptSettlement) -> int:
        kinds = [entry.kind for entry in settlement.entries]
        return self._timeline.fan_out(settlement.item.team_id, kinds)

    def _is_heavy(self, settlement: AttemptSettlement) -> bool:
        return self._rows(settlement) > LIGHT

    async def _learn(self, batch: Sequence[AttemptSettlement], *, anew: bool = False) -> None:
        """Read which webhooks the teams of the batch have now, if the last reading is old. A team that had
        none is read again only with `anew`: as long as it has none, its settlements are written outright
        and cost nothing more."""
        teams = {s.item.team_id for s in batch}
        if not anew:
            teams = {team for team in teams if self._timeline.has_webhooks(team)}
        await self._timeline.learn(self._pool, teams, self._clock.boottime())

    # What is written -------------------------------------------------------------------------------

    async def _settle_fast(self, batch: Sequence[AttemptSettlement]) -> bool:
        """Write the batch in one statement, if it is nothing but ends of items that nobody else has, with the
        first events of their emails; False where it is not, and nothing is written."""
        dimensions = {}
        for settlement in batch:
            item = settlement.item
            if not item.is_first or not _is_plain_end(settlement) or item.email.dimensions is None:
                return False
            dimensions[item.team_id, item.email_id] = item.email.dimensions
        if self._known_domains is not None:
            arrived = {_pair(s.item) for s in batch if _has_arrived(s)}
            if not self._known_domains.has_written(arrived):
                return False
        settled = self._timeline.settled([entry for s in batch for entry in s.entries], dimensions)
        if settled is None:
            return False
        await faults.point("timeline.events")
        await faults.point("webhooks.rows")
        await faults.point("delivery.in_settle")
        done = queries.finish_ours(
            [queries.FinishedItem(*s.item.key, s.item.attempt) for s in batch], self._owner
        )
        try:
            await execute_all(
                self._pool, [done, *settled.writes, *map(_unchecked, _given_back(settled.taken))]
            )
        except RowCountMismatch:
            return False
        if settled.announces:
            self._timeline.committed()
        return True

    async def _settle_general(self, batch: Sequence[AttemptSettlement]) -> None:
        first = {s.item.email_id for s in batch if s.item.is_first}
        try:
            await self._commit(batch, first)
        except FirstEventConflict:
            await self._commit(batch, ())

    async def _commit(self, batch: Sequence[AttemptSettlement], first: Collection[UUID]) -> None:
        async with transaction(self._pool) as conn:
            await self._write(conn, batch, first)
            await faults.point("delivery.in_settle")

    async def _write(
        self, conn: Connection, batch: Sequence[AttemptSettlement], first: Collection[UUID]
    ) -> None:
        done = [queries.FinishedItem(*s.item.key, s.item.attempt) for s in batch if s.retry is None]
        retries = [s.retry for s in batch if s.retry is not None]
        contested = await queries.settle(conn, done, retries, self._owner)
        entries = [entry for s in batch for entry in _facts(s, contested)]
        taken = await self._timeline.record(conn, entries, first=first)
        for statement in _given_back(taken):
            await conn.execute(statement.sql, *statement.args)
        await changes.add(conn, _causes(batch, taken), self._ids, self._publisher)
        if self._known_domains is not None:
            await self._known_domains.reached(conn, {_pair(s.item) for s in batch if _has_arrived(s)})
        captured = [s for s in batch if s.item.key in contested and s.report and s.report.captured]
        if captured:
            await self._keep(conn, captured)


def _facts(settlement: AttemptSettlement, contested: Mapping[Key, bool]) -> Sequence[TimelineEntry]:
    """Return all entries while the item is ours; only final outcomes when the lease has passed."""
    is_contested = contested.get(settlement.item.key)
    if is_contested is not None:
        return (
            [_mark_uncertain(entry) for entry in settlement.entries] if is_contested else settlement.entries
        )
    return [entry for entry in settlement.entries if entry.kind is not EventKind.DELIVERY_DELAYED]


def _mark_uncertain(entry: TimelineEntry) -> TimelineEntry:
    """Return the event, marked: another process may be sending the mail once more."""
    detail = entry.detail or EventDetail()
    return entry._replace(detail=msgspec.structs.replace(detail, uncertain=True))


def _is_plain_end(settlement: AttemptSettlement) -> bool:
    captured = settlement.report is not None and settlement.report.captured is not None
    return settlement.retry is None and not settlement.causes and not captured


def _given_back(taken: Sequence[TimelineEntry]) -> list[Statement]:
    """Return the units of the copies that were stopped (conventions section 8); nothing else ends so here."""
    stopped = [(entry.team_id, entry.email_id) for entry in taken if entry.kind is EventKind.CANCELED]
    return [counting.copies_given_back(stopped)] if stopped else []


def _unchecked(statement: Statement) -> ExpectedRowCount:
    return ExpectedRowCount(*statement)


def _pair(item: Item) -> tuple[UUID, str]:
    return item.team_id, item.destination


def _has_arrived(settlement: AttemptSettlement) -> bool:
    return any(entry.kind is EventKind.DELIVERED for entry in settlement.entries)


def _causes(batch: Sequence[AttemptSettlement], taken: Sequence[TimelineEntry]) -> list[SuppressionCause]:
    """Return the bad addresses whose bounce took effect."""
    bounced = {(e.team_id, e.email_id, e.position) for e in taken if e.kind is EventKind.BOUNCED}
    return [cause for s in batch if s.causes for cause in s.causes if _has_bounced(s.item, cause, bounced)]


def _has_bounced(
    item: Item, cause: SuppressionCause, bounced: Collection[tuple[UUID, UUID, int | None]]
) -> bool:
    return any(
        (item.team_id, item.email_id, target.position) in bounced
        for target in item.targets
        if target.address == cause.address
    )
