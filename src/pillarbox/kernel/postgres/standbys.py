"""Synchronous standbys: whether they have what is committed.

Where the database has a synchronous standby, a commit returns when that has it. But a wait that is cut off (a
cancelled statement, a lost connection) ends only the wait: the transaction is committed here, and everybody
reads it, although it is lost with this server. So what was found by reading is not acknowledged before the
standbys have it.
"""

from __future__ import annotations

from typing import Final

from pillarbox.kernel.postgres.database import Source

# A commit of its own that writes a few bytes to the log. Logs are sent in order: who has these, has all that
# was committed before.
WRITE: Final = "SELECT pg_logical_emit_message(true, 'pillarbox', '')"


async def confirm_commits(source: Source) -> None:
    """Return when all that could be read before this call is as durable as a commit. `source` must not be in
    a transaction."""
    await source.execute(WRITE)
