"""A text that no thread of a long inbox has is looked for in a few requests at a time."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from kit.inbox_rows import Inbox, an_inbox, inbox_world
from pillarbox.inboxes.threads.list_filter import ThreadFilter
from pillarbox.inboxes.threads.text_scans import AT_ONCE, SHORT, TextScans
from pillarbox.kernel.work.team_turns import MOST_OF_ONE, never

FILL = """
    INSERT INTO inbox_threads (team_id, id, inbox_id, subject, folder, messages, inbound, unread,
                               has_attachment, last_message_id, received_at, created_at)
    SELECT $1, gen_random_uuid(), $2, 'Refund', 'inbox', 1, 1, 0, false, gen_random_uuid(), now(), now()
      FROM generate_series(1, $3::int)
"""

UNKNOWN = "/threads?query=unheard"


async def is_answered(inbox: Inbox, path: str) -> int:
    return (await inbox.get(path)).status_code


async def test_texts_are_looked_for_in_turns(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        await inbox.team.db.run(FILL, inbox.id, SHORT + 1)
        short = await an_inbox(inbox.team, "short")
        await inbox.team.db.run(FILL, short.id, SHORT)
        scans = inbox.team.world.app.need(TextScans)
        async with AsyncExitStack() as held:
            for _ in range(AT_ONCE):
                wanted = ThreadFilter(text="unheard")
                await held.enter_async_context(scans.turn(inbox.team.db, inbox.id, wanted, never))
            waiting = [asyncio.create_task(is_answered(inbox, UNKNOWN)) for _ in range(MOST_OF_ONE)]
            while scans.waiting < MOST_OF_ONE:
                await asyncio.sleep(0.01)
            refused = await inbox.get(UNKNOWN)
            assert (refused.status_code, refused.json()["statusCode"]) == (503, 503)
            assert int(refused.headers["retry-after"]) > 0
            for path in ("/threads?limit=1", f"{UNKNOWN}&read=false", f"{UNKNOWN}&folder=archive"):
                assert await is_answered(inbox, path) == 200, path
            assert await is_answered(short, UNKNOWN) == 200
            assert not any(task.done() for task in waiting)
        assert await asyncio.gather(*waiting) == [200] * MOST_OF_ONE
        assert scans.waiting == 0
