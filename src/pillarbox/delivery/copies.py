"""Copies of broadcasts: where the engine gets them from, and the last check before one is sent.

They are made as fast as they are sent (docs/decisions/0076). A higher slice makes them, and knows whether one
may still go out. What is found right before the SMTP transaction of a copy begins holds for a fraction of a
second; all copies that are about to begin are asked for in one statement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.delivery.items import Item
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.delivery.reports import AttemptSettlement, refuse, suppressed
from pillarbox.delivery.settle import AttemptSettler
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import RETRIED
from pillarbox.kernel.wire.problems import DatabaseGone
from pillarbox.timeline.rules import EventDetail, EventKind

log = get("delivery")

VALID_SECONDS: Final = 0.1
"""How old the answer of a check may be when the SMTP transaction begins."""

LINGER: Final = 0.003
"""Seconds in which more copies join a statement; their messages are being composed meanwhile."""

PUT_OFF: Final = timedelta(seconds=30)
"""When a copy of a broadcast that is paused is looked at again."""

PAUSED: Final = "The broadcast is paused."
ENDED: Final = "The broadcast was canceled, or the contact does not want the mail any more."


class CopyKey(NamedTuple):
    """A copy that is about to be sent: which one, of which broadcast, to whom (`address` as it is
    compared)."""

    team_id: UUID
    broadcast_id: UUID
    contact_id: UUID
    address: str


class CopyStatus(Enum):
    """The standing of a copy that is about to be sent."""

    WANTED = "it goes out"
    PAUSED = "its broadcast is paused: it waits"
    ENDED = "it is not to be sent any more"


class CopyVerdict(NamedTuple):
    """`origin` is set where the address is suppressed."""

    standing: CopyStatus
    origin: str | None = None


Held = Callable[[UUID], bool]
"""Whether mail of this team is held back now."""


@dataclass(frozen=True, slots=True)
class BroadcastCopySource:
    """The copies of broadcasts, as a higher slice provides them. `make` makes at most so many copies, commits
    them leased to this process, and returns them. `judge` says of each copy whether it may still go out.
    `is_wanted` is the question whether any are wanted (`kernel.work.queue_poll`)."""

    make: Callable[[int, Held], Awaitable[Sequence[Item]]]
    judge: Callable[[Sequence[CopyKey]], Awaitable[Sequence[CopyVerdict]]]
    is_wanted: str


class _CheckReply(NamedTuple):
    judgement: CopyVerdict
    asked_at: float
    """Boot time from before the statement began."""


class LastCheck:
    """Asks right before copies are sent; those that ask at the same time share a statement."""

    def __init__(
        self, clock: Clock, copies: BroadcastCopySource, claims: ItemClaims, settler: AttemptSettler
    ) -> None:
        self._clock = clock
        self._copies = copies
        self._claims = claims
        self._settler = settler
        self._waiting: list[tuple[CopyKey, asyncio.Future[_CheckReply]]] = []
        self._asking: set[asyncio.Task[None]] = set()
        self._is_asking = False

    def of(self, item: Item) -> CopyCheck:
        """Return the check of one attempt. It is asked for at once, while the message is composed."""
        target = item.targets[0]
        dimensions, contact_id = item.email.dimensions, item.email.contact_id
        if dimensions is None or dimensions.broadcast_id is None or contact_id is None:
            raise ValueError("it is no copy of a broadcast")
        wanted = CopyKey(item.team_id, dimensions.broadcast_id, contact_id, target.address)
        return CopyCheck(self._clock, lambda: self._asked(wanted))

    async def end(self, item: Item, judgement: CopyVerdict | None) -> None:
        """Settle or postpone a copy that was stopped; None where the database could not be asked."""
        now = self._clock.now()
        if judgement is None:
            await self._claims.give_back_soon([item])
        elif judgement.standing is CopyStatus.PAUSED:
            await self._claims.hold(item, now + PUT_OFF, PAUSED)
        elif judgement.standing is CopyStatus.ENDED:
            await self._settler.settle(refuse(item, EventKind.CANCELED, EventDetail(reason=ENDED), now))
        else:
            targets = [target._replace(origin=judgement.origin) for target in item.targets]
            await self._settler.settle(AttemptSettlement(item, suppressed(item, targets, now), None))

    def _asked(self, copy_key: CopyKey) -> asyncio.Future[_CheckReply]:
        """Return the answer for a copy; those that are wanted while one is under way share the next one."""
        answer: asyncio.Future[_CheckReply] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_retrieve)
        self._waiting.append((copy_key, answer))
        if not self._is_asking:
            self._is_asking = True
            task = asyncio.create_task(self._ask())
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        return answer

    async def _ask(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(LINGER)
                batch, self._waiting = self._waiting, []
                await self._ask_for(batch)
        finally:
            self._is_asking = False

    async def _ask_for(self, batch: Sequence[tuple[CopyKey, asyncio.Future[_CheckReply]]]) -> None:
        at = self._clock.boottime()
        try:
            found = await self._copies.judge([wanted for wanted, _ in batch])
        except BaseException as trouble:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(trouble if isinstance(trouble, Exception) else DatabaseGone())
            if not isinstance(trouble, Exception):
                raise
            return
        for judgement, (_, answer) in zip(found, batch, strict=True):
            if not answer.done():
                answer.set_result(_CheckReply(judgement, at))


class CopyCheck:
    """The check of one attempt; `stopped` is why it did not begin."""

    def __init__(self, clock: Clock, ask: Callable[[], asyncio.Future[_CheckReply]]) -> None:
        self._clock = clock
        self._ask = ask
        self._ahead: asyncio.Future[_CheckReply] | None = ask()
        self.is_stopped = False
        self.stopped: CopyVerdict | None = None

    async def is_over(self) -> bool:
        """Return whether the copy is not to be sent any more, after an attempt in which it did not come to
        the question: its server is out of reach. So it does not wait for days to be stopped."""
        if self._ahead is None or self._ahead.cancelled():
            return False
        try:
            judgement = (await self._ahead).judgement
        except Exception as trouble:
            log.warning("delivery.not_checked", trouble=repr(trouble)[:200])
            return False
        if judgement.standing is not CopyStatus.ENDED and judgement.origin is None:
            return False
        self.stopped = judgement
        return True

    async def may_start(self) -> bool:
        """Return whether the copy may be sent, as of a moment ago."""
        try:
            answer = await self._answer()
        except RETRIED as trouble:
            log.warning("delivery.not_checked", trouble=repr(trouble)[:200])
            self.is_stopped = True
            return False
        judgement = answer.judgement
        if judgement.standing is CopyStatus.WANTED and judgement.origin is None:
            return True
        self.is_stopped, self.stopped = True, judgement
        return False

    async def _answer(self) -> _CheckReply:
        """Return the reply that was asked ahead while it is fresh; else ask now, however long that takes."""
        if self._ahead is not None:
            answer, self._ahead = await self._ahead, None
            if self._clock.boottime() - answer.asked_at <= VALID_SECONDS:
                return answer
        return await self._ask()


def _retrieve(asked: asyncio.Future[_CheckReply]) -> None:
    """Retrieve the exception of a check: an attempt may end before it asks."""
    if not asked.cancelled():
        asked.exception()
