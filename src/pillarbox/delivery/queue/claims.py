"""Claiming due work and keeping the leases of what is claimed (architecture 2.5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from uuid import UUID

import asyncpg

from pillarbox.delivery import prometheus, queries
from pillarbox.delivery.items import (
    COPIES,
    QUARANTINED,
    ClaimedItem,
    Item,
    Key,
    LoadedEmail,
    LoadEmails,
    OpenRecipient,
)
from pillarbox.delivery.lease_expiry import LEASE, MARGIN, OVERDUE, LeaseExpiry
from pillarbox.delivery.queries import ITEMS, ClaimShare, FreedItem, Pair
from pillarbox.delivery.queue import final_dots, held_queries, quarantine
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import OUTAGES, RETRIED, TROUBLE, Connection, transaction
from pillarbox.kernel.postgres.stuck_sessions import StuckSessions
from pillarbox.kernel.process.process_table import record_process
from pillarbox.kernel.work.leases import Leases, dead_processes, forget
from pillarbox.timeline.record import Timeline

log = get("delivery")

OUT_OF_REACH = "The mail servers of this domain cannot be reached; all mail for it waits for the next try."
PAIRS_PER_CLAIM = 500
BATCH = 50
MOST_LOADED = 32 * 1024 * 1024
"""Octets of emails that one claim brings into memory; what does not fit stays free."""

START = (UUID(int=0), "")


class EmailUnreadable(Exception):  # noqa: N818 - the claim is rolled back and tried with less
    """An email of a claim cannot be made out of its rows; `first` is the first item of the claim."""

    def __init__(self, first: ClaimedItem, trouble: str) -> None:
        super().__init__(trouble)
        self.first = first


class ItemClaims:
    """Leases items to this process."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        clock: Clock,
        owner: UUID,
        timeline: Timeline,
        load: LoadEmails,
        route: str | None = None,
        offered: Path | None = None,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._owner = owner
        self._timeline = timeline
        self._load = load
        self._route = route
        self._offered = offered
        """The folder of `final_dots`."""

        self._after = START
        self._expiry = LeaseExpiry()
        self._leases = Leases(ITEMS, pool, clock, owner, margin=MARGIN)
        self._stuck_sessions = StuckSessions(clock)
        self._left: dict[Key, int] = {}
        """Items that could not be given back, with their attempts: the database was away."""

    async def due(self) -> list[Pair]:
        """Return the next teams and destinations with due work; each call continues where the one before
        ended. What could not be given back before is free with it."""
        await self._free_left()
        found = await queries.pairs(self._pool, self._clock.now(), self._after, PAIRS_PER_CLAIM)
        full = len(found) == PAIRS_PER_CLAIM
        self._after = (found[-1].team_id, found[-1].destination) if full else START
        return [pair for pair in found if pair.due]

    async def claim(self, claim_shares: Sequence[ClaimShare]) -> list[Item]:
        """Lease due items of these teams and destinations, in one commit; scheduled emails enter the queue
        with it.

        An item whose email cannot be read is quarantined, so that those behind it can be claimed.
        """
        try:
            return await self._claim(claim_shares)
        except EmailUnreadable as unreadable:
            log.error("delivery.unreadable", email=unreadable.first.email_id, trouble=str(unreadable))
            if len(claim_shares) > 1 or claim_shares[0].most > 1:
                ones = [await self.claim([ClaimShare(share.pair, 1)]) for share in claim_shares]
                return [item for one in ones for item in one]
            await self._quarantine(unreadable.first)
            return []

    async def _claim(self, claim_shares: Sequence[ClaimShare]) -> list[Item]:
        deadline = self._leases.deadline()
        now = self._clock.now()
        async with transaction(self._pool) as conn:
            rows = await queries.claim(conn, claim_shares, self._owner, now + LEASE, now)
            teams: dict[UUID, list[ClaimedItem]] = {}
            for row in rows:
                teams.setdefault(row.team_id, []).append(row)
            items: list[Item] = []
            octets = MOST_LOADED
            for team in sorted(teams):
                found = await self._load_team(conn, teams[team], deadline, max(0, octets))
                octets -= sum({item.email_id: item.email.weight for item in found}.values())
                items += found
            return items

    async def _load_team(
        self, conn: Connection, rows: Sequence[ClaimedItem], deadline: float, octets: int
    ) -> list[Item]:
        """Return the items of one team's rows, with their emails; items beyond `octets` are free again."""
        team_id = rows[0].team_id
        await self._release(conn, team_id, rows)
        try:
            emails = await self._load(conn, team_id, sorted({row.email_id for row in rows}), octets)
            loaded = [(row, emails[row.email_id]) for row in rows]
            left = {(team_id, row.email_id, row.grp): row.attempt for row, email in loaded if email is None}
            if left:
                await self._leases.give_back(left, self._clock.now(), conn)
            return [_item(row, *email, deadline) for row, email in loaded if email is not None]
        except TROUBLE:
            raise
        except Exception as trouble:
            # The text of the exception may contain parts of an email.
            raise EmailUnreadable(rows[0], type(trouble).__name__) from None

    async def _quarantine(self, row: ClaimedItem) -> None:
        key = (row.team_id, row.email_id, row.grp)
        if await queries.quarantine_row(self._pool, key, QUARANTINED, quarantine.UNREADABLE):
            quarantine.report([FreedItem(*key, quarantined=True)])

    async def _release(self, conn: Connection, team_id: UUID, rows: Sequence[ClaimedItem]) -> None:
        """Enter the scheduled emails in the queue with the claim. A canceled one has no row to be claimed:
        canceling takes the same row locks and deletes the work."""
        waiting = {row.email_id for row in rows if not row.released}
        if waiting:
            await self._timeline.release(conn, team_id, sorted(waiting), self._clock.now())

    def deadline(self) -> float:
        """Boot time until which a lease that is taken now may be trusted."""
        return self._leases.deadline()

    async def renew(self, items: Iterable[Item]) -> int:
        """Extend the leases of these items; returns how many could not be extended this time."""
        held = {item.key: item for item in items}
        deadline = self._leases.deadline()
        with self._restarting_expiry():
            renewed = await self._leases.renew(held)
        for item in held.values():
            if item.key in renewed:
                item.deadline = deadline
        return len(held) - len(renewed)

    async def give_back(self, items: Iterable[Item]) -> None:
        """Free items that were not started, so that another process can take them at once."""
        await self._leases.give_back({item.key: item.attempt for item in items}, self._clock.now())

    async def give_back_soon(self, items: Collection[Item]) -> None:
        """Free these items as `give_back` does; where the database is away, when due work is next looked for.
        Until then an item may have been free and claimed again, which is another attempt."""
        try:
            await self.give_back(items)
        except RETRIED as trouble:
            if not self._left:
                log.warning("delivery.give_back_waits", trouble=repr(trouble)[:200])
            self.leave_for_later(items)

    def leave_for_later(self, items: Iterable[Item]) -> None:
        """Give back these when work is looked for that is due, if this process has them."""
        self._left.update({item.key: item.attempt for item in items})

    async def _free_left(self) -> None:
        left = dict(self._left)
        if left:
            await self._leases.give_back(left, self._clock.now())
            self._left = {key: attempt for key, attempt in self._left.items() if left.get(key) != attempt}

    async def park(self, items: Sequence[Item], until: datetime) -> None:
        """Free these items and postpone all free work of their teams for their destinations."""
        pairs = sorted({(item.team_id, item.queue) for item in items})
        await self.give_back(items)
        await queries.park(self._pool, pairs, until, OUT_OF_REACH)

    async def hold(self, item: Item, until: datetime, reason: str) -> None:
        """Free an item whose attempt did not count, for later."""
        await held_queries.hold(self._pool, item.key, self._owner, until, reason)

    async def release_held(self) -> None:
        """Make due what was held because the relay refused us: this process may have another password."""
        released = await held_queries.release(self._pool, self._clock.now())
        if released:
            log.info("delivery.released", items=released)

    async def recover(self) -> int:
        """Free items whose lease has surely run out, and those of dead processes on this host."""
        now = self._clock.now()
        suspects = await queries.suspects(self._pool, now + OVERDUE, now + 2 * LEASE)
        lost = self._expiry.lost(suspects, now, self._clock.boottime())
        with self._restarting_expiry():
            freed = await queries.free_expired(self._pool, lost, now, quarantine.RULE) if lost else []
        for process in await dead_processes(self._pool):
            offered = None if self._offered is None else final_dots.read(self._offered, process)
            freed += await queries.free_owned(self._pool, process, now, quarantine.RULE, offered)
            if not await queries.owns_items(self._pool, process):
                await forget(self._pool, process)
                if self._offered is not None:
                    final_dots.remove(self._offered, process)
        if freed:
            log.warning("delivery.recovered", items=len(freed))
            prometheus.LEASES_RECOVERED.add(len(freed))
            quarantine.report(freed)
        return len(freed)

    async def begin(self, item: Item) -> bool:
        """Note that an attempt of an uncertain item begins; False when it is not ours any more."""
        return await queries.begin(self._pool, item.key, self._owner, item.attempt)

    async def put_aside(self, item: Item, reason: str) -> None:
        """Put an item aside that cannot be sent as things are; its reason says what it waits for."""
        if await held_queries.hold_for_key(self._pool, item, self._owner, reason):
            prometheus.QUARANTINED.add()

    async def write_heartbeat(self, roles: str) -> None:
        """Write the heartbeat of this process."""
        with self._restarting_expiry():
            await record_process(self._pool, self._owner, roles, self._clock.now(), route=self._route)

    @contextmanager
    def _restarting_expiry(self) -> Iterator[None]:
        """Count anew since when leases look expired where this write fails for an outage."""
        try:
            yield
        except OUTAGES:
            self._expiry.restart()
            raise

    async def leave(self) -> None:
        """Take this process out of the register, so that the others divide its slots among them; not while it
        holds work, which comes back at once where the register says whose it was."""
        try:
            await forget(self._pool, self._owner)
        except TROUBLE as trouble:
            log.warning("delivery.not_left", trouble=repr(trouble)[:200])

    async def end_stuck_sessions(self) -> None:
        """End sessions of processes that froze in the middle of a statement: claims skip what they lock."""
        await self._stuck_sessions.look(self._pool)


def _item(
    row: ClaimedItem, email: LoadedEmail, groups: Mapping[int, list[OpenRecipient]], deadline: float
) -> Item:
    return Item(
        team_id=row.team_id,
        email_id=row.email_id,
        grp=row.grp,
        destination=row.destination.removeprefix(COPIES),
        attempt=row.attempt,
        tries=row.tries,
        reached=row.reached,
        uncertain=row.uncertain > 0,
        first_attempt_at=row.first_attempt_at,
        targets=groups.get(row.grp, []),
        email=email,
        deadline=deadline,
        begun=row.begun,
        alone=row.grp == 0 and len(groups) == 1,
        has_lost_holder=row.lost > 0,
    )
