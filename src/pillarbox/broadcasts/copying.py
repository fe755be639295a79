"""How waiting recipients become emails, and whether a copy may still go out (broadcasts.md 6 and 8).

An engine that has room asks for copies. The broadcasts that have any take turns. Rows of recipients are taken
in the order of their keys, past those that another process has; each is judged once more, and in one
transaction it becomes an email or says why it does not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.broadcasts import copying_queries as queries
from pillarbox.broadcasts.copying_queries import Property, SendingBroadcast, SendingKey, WaitingRecipient
from pillarbox.broadcasts.plans import queries as plan_queries
from pillarbox.broadcasts.plans.plan import gap_after
from pillarbox.broadcasts.sending import FIRST, BroadcastSending, CopyGroup, decoded_properties
from pillarbox.delivery.copies import CopyKey, CopyStatus, CopyVerdict, Held
from pillarbox.delivery.items import Item
from pillarbox.emails.broadcast_copies.loading import SharedBy
from pillarbox.emails.broadcast_copies.making import MakingCopies, NewCopy
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.combined_statement import Statement
from pillarbox.kernel.postgres.database import RETRIED, Connection, transaction
from pillarbox.kernel.process import faults
from pillarbox.kernel.wire.problems import Problem
from pillarbox.mail.message.address import AddressError, Mailbox, parse_mailbox
from pillarbox.mail.placeholders.contact_values import ContactValues

log = get("broadcasts")

WANTED: Final = CopyVerdict(CopyStatus.WANTED)
NEVER: Final = float("-inf")
MOST_FRUITLESS: Final = 10
"""Portions of recipients that are read before other broadcasts have their turn, where each recipient has
hours of its own."""

BROKEN: Final = 30.0
"""Seconds until copies are tried again of a broadcast of which none could be made."""

OTHER_RELEASE: Final = timedelta(minutes=1)
"""Engines that were seen so lately are alive."""


class CopyMaker:
    """Makes copies for the engine of this process. `check_capacity` raises where there is no room for mail.
    `give_back` gets copies of which nobody knows whether they were committed."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        clock: Clock,
        making: MakingCopies,
        check_capacity: Callable[[], None],
        give_back: Callable[[Sequence[Item]], None],
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._making = making
        self._admits = check_capacity
        self._give_back = give_back
        self._cursors: dict[SendingKey, UUID] = {}
        """Behind which contact the next waiting row of each broadcast is looked for."""

        self._fruitful: set[SendingKey] = set()
        """Those of which copies were made since they were read from their beginning."""

        self._rests_until: dict[SendingKey, float] = {}
        """Until when nothing is looked for, in boot time: none waits, or none could be made."""

        self._last = FIRST
        """The broadcast whose turn it was last."""

    async def make(self, limit: int, held: Held) -> Sequence[Item]:
        """Make up to so many copies, of the next broadcast that has some waiting."""
        try:
            self._admits()
        except Problem:
            return ()
        now = self._clock.now()
        ready = await queries.ready(self._pool, now - OTHER_RELEASE)
        self._cursors = {one.key: self._cursors.get(one.key, FIRST) for one in ready}
        self._rests_until = {one.key: self._rests_until.get(one.key, NEVER) for one in ready}
        self._fruitful &= self._cursors.keys()
        # Whoever comes behind the last one first, then the others.
        ready.sort(key=lambda one: (one.id <= self._last, one.id))
        for row in ready:
            if held(row.team_id):
                continue
            if (items := await self._tried(row, limit)) is not None:
                self._last = row.id
                return items
        return ()

    async def _tried(self, row: SendingBroadcast, limit: int) -> list[Item] | None:
        """Return copies of this broadcast, or None. A failure to read its plan, or to make them, is logged
        and does not stop other broadcasts."""
        if self._clock.boottime() < self._rests_until[row.key]:
            return None
        try:
            sending = BroadcastSending.of(row)
            return await self._some(sending, limit) if sending.is_due(self._clock.now()) else None
        except RETRIED:
            raise
        except Exception:
            log.exception("broadcasts.copies_not_made", id=row.id)
            self._rests_until[row.key] = self._clock.boottime() + BROKEN
            return None

    async def _some(self, sending: BroadcastSending, limit: int) -> list[Item] | None:
        """Return copies of this broadcast; None where none of its recipients is free, or after many whose
        hours are not now."""
        now = self._clock.boottime()
        for _ in range(MOST_FRUITLESS if sending.has_zones else sys.maxsize):
            was_first = self._cursors[sending.key] == FIRST
            items, found = await self._take(sending, limit)
            if items:
                self._fruitful.add(sending.key)
                return items
            if found is None:
                return None
            if not found:
                # At the end it begins anew: a process that died may have left some behind.
                self._cursors[sending.key] = FIRST
                is_over = was_first or (sending.has_zones and sending.key not in self._fruitful)
                self._fruitful.discard(sending.key)
                if is_over:
                    self._rests_until[sending.key] = now + sending.rest(self._clock.now())
                    return None
        return None

    async def _take(self, sending: BroadcastSending, limit: int) -> tuple[list[Item], int | None]:
        """Return the copies of the next waiting recipients, and how many recipients were looked at; None
        where another process makes the copies that are due."""
        items: list[Item] = []
        try:
            found = await self._written(sending, limit, items)
        except RETRIED:
            # The connection may have been lost in the commit: then nobody but this process has them.
            self._give_back(items)
            raise
        return items, found

    async def _written(self, sending: BroadcastSending, limit: int, items: list[Item]) -> int | None:
        """Write the copies and add them to the items; returns how many recipients were looked at."""
        broadcast = sending.row
        async with transaction(self._pool) as conn:
            batch = await sending.next(conn, self._cursors[sending.key], limit, self._clock.now())
            if batch is None or not batch.looked_at:
                return None if batch is None else 0
            for group in batch.groups:
                items += await self._stored(conn, sending, group)
            if sending.plan.per_hour is not None and items:
                next_at = self._clock.now() + gap_after(sending.plan.per_hour, len(items))
                await plan_queries.set_next(conn, broadcast.team_id, broadcast.id, next_at)
            await faults.point("broadcast.copies_written")
        await faults.point("broadcast.copies_committed")
        self._cursors[sending.key] = batch.last
        return batch.looked_at

    async def _stored(self, conn: Connection, sending: BroadcastSending, group: CopyGroup) -> list[Item]:
        """Store the copies of recipients that get the same content."""
        broadcast, shared = sending.row, _shared(sending.row, group.content_id)
        needed = await self._making.needed(conn, shared)
        properties: Sequence[Property] = ()
        if needed.properties:
            properties = await queries.properties(conn, broadcast.team_id, needed.properties)
        new = [_new(one, properties) for one in group.waiting if one.skipped_for is None]
        reached = [one for one in new if one is not None]
        return await self._making.store(conn, shared, reached, lambda emails: _note(broadcast, group, emails))

    async def judge(self, copies: Sequence[CopyKey]) -> list[CopyVerdict]:
        """Return for each copy whether it may still be sent, is paused or is ended, and whether its address
        is suppressed."""
        found = await queries.standing(self._pool, copies)
        judged = [WANTED] * len(copies)
        for place, standing in found.items():
            judged[place] = _judgement(*standing)
        return judged


def _shared(sending_broadcast: SendingBroadcast, content_id: UUID) -> SharedBy:
    return SharedBy(
        team_id=sending_broadcast.team_id,
        team_number=sending_broadcast.team_number,
        broadcast_id=sending_broadcast.id,
        content_id=content_id,
        topic_id=sending_broadcast.topic_id,
        domain_id=sending_broadcast.domain_id,
        domain_name=sending_broadcast.domain_name,
    )


def _note(broadcast: SendingBroadcast, group: CopyGroup, emails: Mapping[UUID, UUID]) -> Statement:
    return queries.note(
        broadcast.team_id,
        broadcast.id,
        [(one.contact_id, emails.get(one.contact_id), _reason(one, emails)) for one in group.waiting],
        group.variant,
    )


def _reason(waiting_recipient: WaitingRecipient, emails: Mapping[UUID, UUID]) -> str | None:
    """Return why this recipient was skipped, if so."""
    return waiting_recipient.skipped_for or (
        None if waiting_recipient.contact_id in emails else "invalid_address"
    )


def _mailbox(waiting_recipient: WaitingRecipient) -> Mailbox | None:
    """Return the mailbox of the recipient; None where the address is not valid, which does not stop the
    others."""
    try:
        return parse_mailbox(waiting_recipient.email)
    except AddressError:
        return None


def _new(waiting_recipient: WaitingRecipient, properties: Sequence[Property]) -> NewCopy | None:
    mailbox = _mailbox(waiting_recipient)
    if mailbox is None:
        return None
    own = decoded_properties(waiting_recipient.properties or "{}")
    values = ContactValues(
        email=waiting_recipient.email,
        first_name=waiting_recipient.first_name,
        last_name=waiting_recipient.last_name,
        properties={known.key: own.get(str(known.number)) for known in properties},
        fallbacks={known.key: known.fallback for known in properties},
    )
    return NewCopy(
        contact_id=waiting_recipient.contact_id,
        address=waiting_recipient.address,
        mailbox=mailbox,
        values=values,
        origin=waiting_recipient.origin,
    )


def _judgement(status: str, is_paused: bool, is_wanted: bool, origin: str | None) -> CopyVerdict:
    if status not in ("queued", "sent") or not is_wanted:
        return CopyVerdict(CopyStatus.ENDED)
    return CopyVerdict(CopyStatus.PAUSED if is_paused else CopyStatus.WANTED, origin)
