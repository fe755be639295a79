"""Accepting events: those that come at the same time are stored by one commit (events.md section 2).

What the database knows of an event (the schema of its name, the address of its contact) is looked up in the
transaction that stores it. With the events the jobs of their partitions are made; a job that is about to end
makes the commit wait for it, so no event is left in a partition without a job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.events import prometheus
from pillarbox.events import sending_queries as queries
from pillarbox.events.partitions import JOB, partition_of, subject_of
from pillarbox.events.payloads import Schema, encoded, fitted
from pillarbox.events.sending_queries import EventRow, PartitionKey
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import GONE, Connection, after_commit, problem_of, transaction
from pillarbox.kernel.postgres.group_commit import GroupCommit
from pillarbox.kernel.postgres.time_limit import TimeLimit
from pillarbox.kernel.process import faults
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.kernel.wire.problems import DatabaseGone, NotFound, OutcomeUnknown, Problem
from pillarbox.kernel.work.job_queries import NewJob, add_several

log = get("events")

MOST_REQUESTS: Final = 500
MOST_WAITING: Final = 64 * 1024 * 1024
"""Octets of payloads that wait in this process."""

MOST_WEIGHT: Final = 2 * 1024 * 1024
ROW_WEIGHT: Final = 512
COMMIT_SECONDS: Final = 7.0
PARTITION_TRIES: Final = 20
"""How often in a row a job may end that is waited for."""


class SentEvent(NamedTuple):
    """An event as somebody sends it, to a contact or an address; `text` is its payload as JSON."""

    name: str
    contact_id: UUID | None
    address: EmailAddress | None
    payload: Mapping[str, Any]
    text: str


class AddressedEvent(NamedTuple):
    """An event that happened to an address at an instant; `text` is its payload as JSON."""

    name: str
    email: EmailAddress
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class _SendRequest:
    """Events that are stored together or not at all."""

    team_id: UUID
    events: Sequence[SentEvent]


class EventRefused(Exception):  # noqa: N818 - it carries an answer
    """One event of several cannot be stored."""

    def __init__(self, index: int, problem: Problem) -> None:
        super().__init__(index, problem)
        self.problem = problem


class EventSender:
    """Stores events. `check_capacity` raises where there is no room for them, `wake` tells that there is
    work."""

    def __init__(
        self, pool: asyncpg.Pool, ids: Ids, check_capacity: Callable[[], None], wake: Callable[[], None]
    ) -> None:
        self._pool = pool
        self._ids = ids
        self._admits = check_capacity
        self._wake = wake
        self._commits: GroupCommit[_SendRequest, None] = GroupCommit(
            self._flush,
            kind="events",
            flushers=1,
            weigh=_weight,
            most_items=MOST_REQUESTS,
            most_weight=MOST_WEIGHT,
            most_waiting=MOST_WAITING,
            shared=(DatabaseGone, asyncpg.InsufficientResourcesError),
        )

    async def send(self, team_id: UUID, events: Sequence[SentEvent]) -> None:
        """Return when all of them are durable; where one cannot be stored none is, and EventRefused says
        which and why."""
        self._admits()
        await self._commits.submit(_SendRequest(team_id, events))

    async def store(self, conn: Connection, team_id: UUID, events: Sequence[AddressedEvent]) -> None:
        """Store events of addresses in the caller's transaction, as they are; wakes after its commit."""
        rows = [
            EventRow(
                team_id=team_id,
                id=self._ids.new(),
                partition=partition_of(event.email.address),
                name=event.name,
                contact_id=None,
                address=event.email.address,
                email=event.email.given,
                payload=event.text,
                at=event.at,
            )
            for event in events
        ]
        if await self._write(conn, rows):
            after_commit(conn, self._wake)

    async def drain(self) -> None:
        """Return when nothing is being committed."""
        await self._commits.drain()

    async def _flush(self, batch: Sequence[_SendRequest]) -> Sequence[EventRefused | None]:
        is_written, new_partitions, answers = False, 0, list[EventRefused | None]()
        try:
            with TimeLimit(COMMIT_SECONDS):
                async with transaction(self._pool) as conn:
                    rows, answers = await self._rows(conn, batch)
                    new_partitions = await self._write(conn, rows)
                    await faults.point("events.before_commit")
                    is_written = True
        except GONE as gone:
            if is_written:
                raise OutcomeUnknown from gone
            raise problem_of(gone) from gone
        # Committed is committed: whatever fails from here on, the answer is yes.
        try:
            await faults.point("events.after_commit")
        except Exception:
            log.exception("events.after_commit_failed")
        prometheus.ACCEPTED.add(len(rows))
        if new_partitions:
            self._wake()
        return answers

    async def _rows(
        self, conn: Connection, batch: Sequence[_SendRequest]
    ) -> tuple[list[EventRow], list[EventRefused | None]]:
        """Return the rows of what can be stored, and for each request what refuses it."""
        names = {(one.team_id, event.name) for one in batch for event in one.events}
        contacts = {
            (one.team_id, event.contact_id)
            for one in batch
            for event in one.events
            if event.contact_id is not None
        }
        known = _KnownEvents(
            {
                key: msgspec.json.decode(schema)
                for key, schema in (await queries.schemas(conn, names)).items()
            },
            await queries.addresses(conn, contacts) if contacts else {},
        )
        rows, answers = list[EventRow](), list[EventRefused | None]()
        for one in batch:
            try:
                found = [
                    self._row(one.team_id, index, event, known) for index, event in enumerate(one.events)
                ]
            except EventRefused as refused:
                answers.append(refused)
            else:
                rows += found
                answers.append(None)
        return rows, answers

    def _row(self, team_id: UUID, index: int, event: SentEvent, known: _KnownEvents) -> EventRow:
        try:
            address, email = known.address_of(team_id, event)
            text = event.text
            if (schema := known.schemas.get((team_id, event.name))) is not None:
                text = encoded(fitted(event.payload, schema))
        except Problem as problem:
            raise EventRefused(index, problem) from None
        partition = partition_of(address)
        return EventRow(
            team_id=team_id,
            id=self._ids.new(),
            partition=partition,
            name=event.name,
            contact_id=event.contact_id,
            address=address,
            email=email,
            payload=text,
            at=None,
        )

    async def _write(self, conn: Connection, rows: Sequence[EventRow]) -> int:
        """Write the rows; how many partitions have work that had none."""
        if not rows:
            return 0
        now = self._ids.now()
        await queries.insert(conn, rows, now)
        missing = sorted({PartitionKey(row.team_id, subject_of(row.partition)) for row in rows})
        partitions, new_partitions = missing, 0
        for _ in range(PARTITION_TRIES):
            new_partitions += await add_several(
                conn,
                [
                    NewJob(
                        team_id=partition.team_id,
                        id=job_id,
                        kind=JOB,
                        subject_id=partition.subject_id,
                        due_at=now,
                    )
                    for partition, job_id in zip(missing, self._ids.several(len(missing)), strict=True)
                ],
            )
            held = await queries.hold_jobs(conn, JOB, partitions)
            missing = [partition for partition in partitions if partition not in held]
            if not missing:
                return new_partitions
        raise DatabaseGone


@dataclass(frozen=True, slots=True)
class _KnownEvents:
    """The database's knowledge of the events of a batch."""

    schemas: Mapping[tuple[UUID, str], Schema]
    contacts: Mapping[tuple[UUID, UUID], tuple[str, str | None]]

    def address_of(self, team_id: UUID, event: SentEvent) -> tuple[str, str | None]:
        """Return the address of the event's contact; 404 for a contact that does not exist."""
        if event.address is not None:
            return event.address
        found = None if event.contact_id is None else self.contacts.get((team_id, event.contact_id))
        if found is None:
            raise NotFound("Contact")
        return found


def _weight(send_request: _SendRequest) -> int:
    return sum([len(event.text) + ROW_WEIGHT for event in send_request.events])
