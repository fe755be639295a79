"""Personal data in inboxes: threads in which it wrote or was written to, and drafts to it.

Such a thread goes whole, because each answer quotes the one before. Its emails are given back, and what was
received
is removed and what was sent is erased as all other mail (docs/decisions/0182).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from pillarbox.inboxes import personal_queries as queries
from pillarbox.inboxes.personal_queries import MessageOfPerson
from pillarbox.inboxes.threads.changes import Threads
from pillarbox.inboxes.threads.purge import ThreadPurge
from pillarbox.inboxes.trust import queries as trust_queries
from pillarbox.inboxes.trust.confusables import address_key
from pillarbox.kernel.personal_data import (
    BATCH,
    ERASED_ADDRESS,
    DataSubject,
    ErasedRows,
    EraseStep,
    PersonalData,
)
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.slices import Container
from pillarbox.kernel.wire.problems import NotFound

THREADS: Final = 20
"""Threads that one step removes: their inboxes are locked meanwhile, and mail to them waits."""

START: Final = "00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000000"
"""Before the first message of the first inbox."""


def _first(walked: Sequence[MessageOfPerson]) -> Sequence[MessageOfPerson]:
    """Return as many messages as have `THREADS` threads of the person."""
    threads = set()
    for number, row in enumerate(walked, 1):
        if row.is_concerned:
            threads.add(row.thread_id)
        if len(threads) == THREADS:
            return walked[:number]
    return walked


def thread_eraser(kit: Container) -> EraseStep:
    """Return the step that removes threads of a person."""
    purge, changes = kit.need(ThreadPurge), kit.need(Threads)

    async def erase(db: TeamDb, person: DataSubject, place: str, _: datetime) -> ErasedRows:
        walked = await queries.span(db, person, (place or START).split(","), BATCH)
        looked_at = _first(walked)
        threads = dict.fromkeys((row.inbox_id, row.thread_id) for row in looked_at if row.is_concerned)
        blobs: list[str | None] = []
        waiting = 0
        for inbox_id, thread_id in threads:
            try:
                await changes.trash(db, inbox_id, thread_id)
            except NotFound:
                # A job removes the rest of a long thread.
                waiting += 1
                continue
            gone, is_whole = await purge.erase(db, inbox_id, thread_id)
            blobs += gone
            waiting += not is_whole
        is_last = looked_at == walked and len(walked) < BATCH
        following = None if is_last else f"{looked_at[-1].inbox_id},{looked_at[-1].id}"
        return ErasedRows(following, len(threads), waiting=waiting, blobs=blobs)

    return erase


async def erase_drafts(db: TeamDb, person: DataSubject, _: str, __: datetime) -> ErasedRows:
    """Erase the person in drafts, and in the lists of policies; a team has few."""
    await queries.erase_listed(db, person.address, ERASED_ADDRESS)
    return ErasedRows(None, await queries.erase_drafts(db, person, ERASED_ADDRESS))


async def forget_address(db: TeamDb, person: DataSubject, _: str, __: datetime) -> ErasedRows:
    """Forget that inboxes have written to the person."""
    given = {person.address, person.given or person.address}
    return ErasedRows(None, sum([await trust_queries.forget_address(db, address_key(one)) for one in given]))


async def read(db: TeamDb, person: DataSubject) -> AsyncIterator[dict[str, Any]]:
    """Yield the messages of inboxes that the person wrote or got."""
    place = START
    while True:
        walked = await queries.span(db, person, place.split(","), BATCH)
        for row in await queries.shown(db, [row.id for row in walked if row.is_concerned]):
            yield {
                "id": row.id,
                "thread_id": row.thread_id,
                "direction": row.direction,
                "received_at": row.received_at,
                "from": row.sender,
                "to": msgspec.json.decode(row.to_list),
                "subject": row.subject,
            }
        if len(walked) < BATCH:
            return
        place = f"{walked[-1].inbox_id},{walked[-1].id}"


PERSONAL_DATA: Final = [
    PersonalData(name="inbox_messages", order=30, eraser=thread_eraser, read=read),
    PersonalData(name="inbox_drafts", order=31, eraser=lambda _: erase_drafts),
    PersonalData(name="inbox_correspondents", order=32, eraser=lambda _: forget_address),
]
