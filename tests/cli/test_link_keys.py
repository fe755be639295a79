"""`pillarbox keyring`: the keys of links in sent mail."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cli.conftest import Installation
from kit.manual_world import clock_of, manual_world
from kit.unsubscribing import recipient


async def test_another_key_makes_later_links_and_older_ones_stay(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        old = await recipient(team)
        run = Installation(database_url, tmp_path).run
        done = await asyncio.to_thread(run, "keyring", "new-link-key")
        assert (done.exit_code, done.stdout.startswith("The key 2 makes the links of mail")) == (0, True)
        made_at = await pillarbox.pool.fetchval("SELECT created_at FROM link_keys WHERE id = 2")
        clock = clock_of(pillarbox)
        clock.advance(max(0.0, (made_at - clock.now()).total_seconds()) + 600)
        new = await recipient(team)
        assert old.path[:17] != new.path[:17]
        assert [(await one.opens()).status for one in (old, new)] == [200, 200]
        shown = await asyncio.to_thread(run, "keyring", "show")
        assert shown.exit_code == 0
