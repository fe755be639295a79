"""Whether anything has changed that lists of inboxes, of threads, or one thread show."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pillarbox.inboxes.threads import list_queries
from pillarbox.kernel.postgres.database import TeamDb

NO_THREAD: Final = UUID(int=0)


async def digest_of_inboxes(db: TeamDb, inbox_id: UUID | None) -> str:
    """Return a text that is another one after a change of the newest threads of this inbox; without an inbox,
    after a change of the newest hundred inboxes of the team."""
    if inbox_id is not None:
        return await list_queries.digest_of_inbox(db, inbox_id)
    return await list_queries.digest_of_all(db)


async def digest_of_thread(db: TeamDb, thread_id: UUID | None) -> str:
    """Return a text that is another one after a change of this thread, or a message more in it. Marking it
    as read is no change: that is what opening its page does."""
    return await list_queries.digest_of_thread(db, thread_id or NO_THREAD)


async def newest_message(db: TeamDb, thread_id: UUID) -> UUID | None:
    """Return the newest message of the thread; None where the team has no such thread."""
    return await list_queries.newest_message(db, thread_id)
