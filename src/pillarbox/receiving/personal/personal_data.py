"""Personal data in received mail: mail from the address, and mail that names it among those it was sent
to.

Such mail is removed whole, with its source: what somebody wrote cannot be told apart from what is quoted. A
thread
of an inbox goes first (`pillarbox.inboxes.personal_data`), because an inbox keeps the mail of its threads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.kernel.personal_data import BATCH, DataSubject, ErasedRows, PersonalData, id_at, place_of
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire import large_json
from pillarbox.mail.message import parse
from pillarbox.receiving import queries as receiving_queries
from pillarbox.receiving import retention_queries
from pillarbox.receiving.personal import personal_queries as queries
from pillarbox.receiving.queries import Source
from pillarbox.receiving.rows import ParsedColumns


async def erase(db: TeamDb, person: DataSubject, place: str, _: datetime) -> ErasedRows:
    """Remove the next received mails of the person; those that somebody holds are left for later."""
    walked = await queries.span(db, person.found_by, id_at(place), BATCH)
    concerned = [mail.id for mail in walked if mail.is_concerned]
    gone = await retention_queries.lock_free(db, concerned) if concerned else []
    blobs = await retention_queries.delete_sources(db, gone) if gone else []
    if gone:
        await retention_queries.delete_emails(db, gone)
    last = walked[-1].id if walked else None
    return ErasedRows(
        place_of(last, len(walked), BATCH), len(gone), waiting=len(concerned) - len(gone), blobs=blobs
    )


async def read(db: TeamDb, person: DataSubject) -> AsyncIterator[dict[str, Any]]:
    """Yield the received mails of the person with their text, or their HTML where they have none, the oldest
    first. One at a time is in memory."""
    after = id_at("")
    while True:
        walked = await queries.span(db, person.found_by, after, BATCH)
        for mail in await queries.shown(db, [mail.id for mail in walked if mail.is_concerned]):
            yield {
                "id": mail.id,
                "created_at": mail.created_at,
                "from": mail.sender,
                "to": msgspec.json.decode(mail.to_list),
                "subject": mail.subject,
                **await _body(db, mail.id),
            }
        if len(walked) < BATCH:
            return
        after = walked[-1].id


async def _body(db: TeamDb, email_id: UUID) -> dict[str, str | None]:
    source = await receiving_queries.source(db, email_id)
    if source is None:
        return {"text": None, "html": None}
    size = len(source.parsed or source.data or b"")
    parsed = await in_thread_if_large(size, _parsed, source)
    return {"text": parsed.text, "html": None if parsed.text else parsed.html}


def _parsed(source: Source) -> ParsedColumns:
    if source.parsed is None:
        return ParsedColumns.of(parse.parse(source.data or b""))
    return msgspec.convert(large_json.decode(source.parsed.encode()), ParsedColumns)


PERSONAL_DATA: Final = [PersonalData(name="received_emails", order=40, eraser=lambda _: erase, read=read)]
