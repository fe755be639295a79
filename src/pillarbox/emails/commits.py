"""One commit for many acceptances (architecture 2.6): keys, quotas, emails and log rows.

All that is written goes in one statement. It is a transaction of its own unless something has to be known
before it (idempotency keys, quotas) or follows from it (events of scheduled emails).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.delivery.lease_expiry import LEASE
from pillarbox.emails import queries
from pillarbox.emails.rows import JOB_FETCH, CommitRows, Origins, PreparedEmail
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.idempotency import LIFETIME, AlreadyAnswered, Idempotency, lock_name
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.request_log import (
    LoggedContent,
    RequestLogWriter,
    RequestRecord,
    ResponseRecord,
)
from pillarbox.kernel.postgres.combined_statement import Statement
from pillarbox.kernel.postgres.database import GONE, Connection, Source, problem_of, transaction
from pillarbox.kernel.postgres.shards import shard_group
from pillarbox.kernel.postgres.standbys import confirm_commits
from pillarbox.kernel.postgres.time_limit import TimeLimit
from pillarbox.kernel.process import faults
from pillarbox.kernel.security.authentication import Caller
from pillarbox.kernel.wire.problems import ConcurrentIdempotentRequest, OutcomeUnknown
from pillarbox.kernel.work.job_queries import NewJob, adding
from pillarbox.suppressions.erased_addresses import ORIGIN as ERASED
from pillarbox.suppressions.erased_addresses import ErasedAddresses
from pillarbox.timeline.queries import Wanted
from pillarbox.timeline.record import OpenedBeside, Timeline
from pillarbox.timeline.rules import EventKind
from pillarbox.usage.quotas import Quotas, QuotaSpending

COMMIT_SECONDS = 7.0
"""How long a commit may take before its connection is given up. That is less than those who wait for it have,
so where the connection alone was at fault they still get the result."""

LOOK_UP_TRIES = 20
LOOK_UP_PAUSE = 0.25
LOOK_UP_SECONDS = 1.0
"""For one try."""


class TransactionHook(NamedTuple):
    """A step in the transaction of an acceptance, before its emails are written: `work` is given them, and
    raises to refuse. Hooks of the same `key` run one after the other in this process."""

    key: UUID
    work: Callable[[Connection, Sequence[PreparedEmail]], Awaitable[None]]


@dataclass(slots=True)
class Acceptance:
    """One caller's share of a commit. With `hook` it has a commit of its own."""

    caller: Caller
    drafts: list[PreparedEmail]
    idempotency: Idempotency | None
    answer: bytes
    status: int
    weight: int
    asked: RequestRecord | None
    hook: TransactionHook | None = None


class CommitResult(NamedTuple):
    """The result of a commit. `failed` has the acceptances (by index) that are not in it, and why. `origins`
    has the suppressed addresses of the others; None where they are unknown, and then their work must not be
    handed over."""

    failed: Mapping[int, BaseException]
    origins: Origins | None


class _PreparedCommit(NamedTuple):
    """The rows to write for some acceptances."""

    kept: Sequence[Acceptance]
    rows: CommitRows
    opened: OpenedBeside


class Commits:
    """Writes acceptances. `owner` is the process whose engine takes work over.

    Where the tables are distributed over `shards` shards, what lies in different groups of them is committed
    apart, so that a commit concerns one server (docs/decisions/0052).
    """

    def __init__(
        self,
        *,
        pool: asyncpg.Pool,
        clock: Clock,
        ids: Ids,
        timeline: Timeline,
        quotas: Quotas,
        request_log: RequestLogWriter,
        owner: UUID,
        shards: int = 0,
        erased: ErasedAddresses | None = None,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._ids = ids
        self._timeline = timeline
        self._quotas = quotas
        self._request_log = request_log
        self._owner = owner
        self._shards = shards
        self._erased = erased

    async def learn(self, team_id: UUID) -> None:
        """Read which webhooks the team has now, for `fan_out`."""
        try:
            await self._timeline.learn(self._pool, [team_id], self._clock.boottime())
        except GONE as gone:
            raise problem_of(gone) from gone

    def fan_out(self, acceptance: Acceptance) -> int:
        """Return how many deliveries to webhooks are written with it, by what is known of its team."""
        scheduled = sum([draft.outgoing.scheduled_at is not None for draft in acceptance.drafts])
        return scheduled * self._timeline.fan_out(acceptance.caller.team_id, (EventKind.SCHEDULED,))

    async def commit(self, batch: Sequence[Acceptance], leased: Sequence[bool]) -> CommitResult:
        """Commit the batch; where `leased` says so, with its work leased to the owner.

        Raises `DatabaseGone` where nothing was committed because the database went away, and `OutcomeUnknown`
        where it stays away and the outcome is not known. Of a batch that is committed in groups these are
        among the failed.
        """
        groups = defaultdict[int, list[int]](list)
        for index, acceptance in enumerate(batch):
            groups[shard_group(acceptance.caller.team_id, self._shards)].append(index)
        if len(groups) <= 1:
            return await self._commit(batch, leased)
        return await self._in_groups(batch, leased, list(groups.values()))

    async def _in_groups(
        self, batch: Sequence[Acceptance], leased: Sequence[bool], groups: Sequence[Sequence[int]]
    ) -> CommitResult:
        commits = [self._commit([batch[i] for i in group], [leased[i] for i in group]) for group in groups]
        failed: dict[int, BaseException] = {}
        origins: Origins | None = {}
        for group, result in zip(groups, await asyncio.gather(*commits, return_exceptions=True), strict=True):
            if isinstance(result, BaseException):
                failed |= dict.fromkeys(group, result)
                continue
            failed |= {group[at]: problem for at, problem in result.failed.items()}
            origins = None if origins is None or result.origins is None else origins | result.origins
        return CommitResult(failed, origins)

    async def _commit(self, batch: Sequence[Acceptance], leased: Sequence[bool]) -> CommitResult:
        with TimeLimit(COMMIT_SECONDS):
            if any(_has_conditions(acceptance) for acceptance in batch):
                return await self._in_transaction(batch, leased)
            prepared = self._prepare(batch, leased)
            if prepared.opened.published or prepared.rows.is_large:
                return await self._in_transaction(batch, leased, prepared)
            return CommitResult({}, await self._in_one_statement(prepared))

    async def _in_one_statement(self, prepared: _PreparedCommit) -> Origins | None:
        await faults.point("timeline.events")
        await faults.point("accept.before_commit")
        backend = 0
        try:
            async with self._pool.acquire() as conn:
                backend = conn.get_server_pid()
                origins, _ = await self._write(conn, prepared)
        except GONE as gone:
            return await self._found(prepared, backend, gone)
        return origins

    async def _in_transaction(
        self, batch: Sequence[Acceptance], leased: Sequence[bool], prepared: _PreparedCommit | None = None
    ) -> CommitResult:
        """Commit what takes several statements. Without `prepared` the batch has conditions."""
        failed: Mapping[int, BaseException] = {}
        origins: Origins | None = None
        backend = 0
        try:
            async with transaction(self._pool) as conn:
                backend = conn.get_server_pid()
                if prepared is None:
                    failed = await self._refusals(conn, batch)
                    left = [index for index in range(len(batch)) if index not in failed]
                    prepared = self._prepare([batch[i] for i in left], [leased[i] for i in left])
                origins = await self._write_and_publish(conn, prepared)
                await faults.point("accept.before_commit")
        except GONE as gone:
            if prepared is None:
                raise problem_of(gone) from gone
            origins = await self._found(prepared, backend, gone)
        return CommitResult(failed, origins)

    async def write_in(self, conn: Connection, acceptance: Acceptance) -> None:
        """Write an acceptance in somebody else's transaction; its work is free for every engine."""
        await self._write_and_publish(conn, self._prepare([acceptance], [False]))

    # What is written -------------------------------------------------------------------------------

    def _prepare(self, kept: Sequence[Acceptance], leased: Sequence[bool]) -> _PreparedCommit:
        rows = CommitRows(self._owner, self._clock.now(), LEASE)
        for acceptance, is_leased in zip(kept, leased, strict=True):
            for draft in acceptance.drafts:
                rows.add(draft, leased=is_leased and draft.is_handed_over)
        opened = self._timeline.opened_beside(rows.openings)
        rows.name_entries(opened.ids)
        return _PreparedCommit(kept, rows, opened)

    async def _write_and_publish(self, conn: Connection, prepared: _PreparedCommit) -> Origins:
        await faults.point("timeline.events")
        origins, wanted = await self._write(conn, prepared)
        if prepared.opened.published:
            await self._timeline.publish(conn, prepared.opened.published, wanted)
        return origins

    async def _write(self, conn: Connection, prepared: _PreparedCommit) -> tuple[Origins, Wanted]:
        rows, opened = prepared.rows, prepared.opened
        if rows.is_large:
            for contents in rows.take_contents():
                await queries.store_contents(conn, contents)
        writes = [*queries.stores(rows), *opened.writes] if rows.openings else []
        if rows.fetches:
            jobs = [
                NewJob(
                    team_id=team, id=self._ids.new(), kind=JOB_FETCH, subject_id=email, due_at=at, site=site
                )
                for team, email, at, site in rows.fetches
            ]
            writes.append(adding(jobs))
        if (record := self._record(prepared.kept)) is not None:
            writes.append(record)
        if not writes:
            return {}, {}
        teams = {event.team_id for event in opened.published}
        origins, wanted = await queries.store(conn, writes, rows.judged, teams, rows)
        return await self._with_erased(conn, origins, rows.judged), wanted

    async def _with_erased(
        self, conn: Source, origins: Origins, judged: Collection[tuple[UUID, str]]
    ) -> Origins:
        """Return the suppressed addresses together with those of people who were erased."""
        for team_id in [team for team, address in origins if not address]:
            del origins[team_id, ""]
            if self._erased is not None:
                addresses = {address for team, address in judged if team == team_id}
                for address in await self._erased.found_among(conn, team_id, addresses):
                    origins.setdefault((team_id, address), ERASED)
        return origins

    def _record(self, kept: Sequence[Acceptance]) -> Statement | None:
        """Return the log rows of the requests that these emails came with."""
        answered = [
            ResponseRecord(
                a.asked,
                a.status,
                a.answer,
                [LoggedContent(draft.outgoing.html, draft.outgoing.text) for draft in a.drafts],
            )
            for a in kept
            if a.asked is not None
        ]
        return self._request_log.rows(answered) if answered else None

    # What is known before --------------------------------------------------------------------------

    async def _refusals(self, conn: Connection, batch: Sequence[Acceptance]) -> Mapping[int, BaseException]:
        """Claim keys, do the work of a hook and spend quotas, in this order; return which acceptances are
        refused, and why. What refuses an acceptance with a hook is raised: it undoes the work."""
        hook = batch[0].hook
        failed = await self._claim_keys(conn, batch)
        if hook is not None:
            _raise_first(failed)
            await hook.work(conn, batch[0].drafts)
            await faults.point("accept.within")
        failed |= await self._over_quota(conn, batch, failed)
        if hook is not None:
            _raise_first(failed)
        return failed

    async def _claim_keys(self, conn: Connection, batch: Sequence[Acceptance]) -> dict[int, BaseException]:
        """Reserve the idempotency keys of the batch; answers those that are taken.

        The advisory lock is tried, never waited for: a key in flight elsewhere must not delay the
        other callers of this commit (contract decision 26).
        """
        keyed = [(index, a, a.idempotency) for index, a in enumerate(batch) if a.idempotency is not None]
        if not keyed:
            return {}
        failed: dict[int, BaseException] = {}
        names = [lock_name(a.caller.team_id, key) for _, a, key in keyed]
        held = await queries.lock_keys(conn, names)
        rows = []
        first: dict[tuple[UUID, str, str], int] = {}
        now = self._clock.now()
        for at, (index, a, key) in enumerate(keyed):
            name = (a.caller.team_id, key.scope, key.key)
            if at not in held or name in first:
                failed[index] = ConcurrentIdempotentRequest()
                continue
            first[name] = index
            rows.append((*name, key.fingerprint, a.status, a.answer, now))
        free = await queries.claim_keys(conn, rows, now - LIFETIME) if rows else set()
        for name, index in first.items():
            if name not in free:
                failed[index] = AlreadyAnswered()
        return failed

    async def _over_quota(
        self, conn: Connection, batch: Sequence[Acceptance], failed: Mapping[int, BaseException]
    ) -> dict[int, BaseException]:
        """Spend the units of teams with a quota; answers those for which there are not enough, whose keys are
        free again."""
        metered = [
            (i, a) for i, a in enumerate(batch) if a.caller.is_metered and a.drafts and i not in failed
        ]
        if not metered:
            return {}
        wanted = [
            QuotaSpending(a.caller.team_id, a.drafts[0].at, sum([len(draft.targets) for draft in a.drafts]))
            for _, a in metered
        ]
        judged = zip(metered, await self._quotas.judge(conn, wanted), strict=True)
        over = [(index, a, problem) for (index, a), problem in judged if problem is not None]
        keys = [(a.caller.team_id, a.idempotency) for _, a, _ in over if a.idempotency is not None]
        if keys:
            await queries.release_keys(conn, [(team, key.scope, key.key) for team, key in keys])
        return {index: problem for index, _, problem in over}

    # What became of it -----------------------------------------------------------------------------

    async def _found(self, prepared: _PreparedCommit, backend: int, gone: BaseException) -> Origins | None:
        """Find out whether this was committed when the connection was lost meanwhile (architecture 2.6).

        Raises `DatabaseGone` where it was not, `OutcomeUnknown` where the database does not answer. What is
        found to be committed stays so, even where the database goes away once more: then it is not known
        which addresses are suppressed.
        """
        if not backend:
            raise problem_of(gone) from gone
        drafts = [draft for acceptance in prepared.kept for draft in acceptance.drafts]
        was_committed = await self._was_committed(drafts, backend) if drafts else None
        if was_committed is None:
            raise OutcomeUnknown from gone
        if not was_committed:
            raise problem_of(gone) from gone
        try:
            with TimeLimit(LOOK_UP_SECONDS):
                origins, _ = await queries.store(self._pool, [], prepared.rows.judged, ())
                origins = await self._with_erased(self._pool, origins, prepared.rows.judged)
        except GONE:
            return None
        return origins

    async def _was_committed(self, drafts: Sequence[PreparedEmail], backend: int) -> bool | None:
        """Return whether these emails are stored, and on synchronous standbys too; None where that is not
        known. A server process that is still at it is waited for."""
        teams, ids = list({draft.team_id for draft in drafts}), [draft.id for draft in drafts]
        for _ in range(LOOK_UP_TRIES):
            try:
                with TimeLimit(LOOK_UP_SECONDS):
                    if not await queries.is_at_work(self._pool, backend):
                        is_stored = len(await queries.existing(self._pool, teams, ids)) == len(ids)
                        if is_stored:
                            await confirm_commits(self._pool)
                        return is_stored
            except GONE:
                pass
            await asyncio.sleep(LOOK_UP_PAUSE)
        return None


def _has_conditions(acceptance: Acceptance) -> bool:
    """Return whether something has to be known before it can be written."""
    return acceptance.idempotency is not None or acceptance.caller.is_metered or acceptance.hook is not None


def _raise_first(failed: Mapping[int, BaseException]) -> None:
    for problem in failed.values():
        raise problem
