"""While outcomes cannot be stored no further event is told, so none is told twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kit.receiver import WEBHOOKS, receiver
from kit.webhooks import hook, publish
from kit.world import world

EVENTS = 400
FULL = """
    CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full';
    END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON webhook_attempts FOR EACH STATEMENT EXECUTE FUNCTION full_disk()
"""


async def test_events_wait_while_the_disk_of_the_database_is_full(database_url: str, tmp_path: Path) -> None:
    async with receiver() as at, world(database_url, tmp_path, **WEBHOOKS) as pillarbox:
        on = await hook(await pillarbox.team(), endpoint=at.url)
        await pillarbox.pool.execute(FULL)
        await publish(on.team, *["domain.updated"] * EVENTS)
        await at.wait_for(1)
        await asyncio.sleep(1.5)
        told = len(at.arrivals)
        assert told < EVENTS / 2, "what was on its way when the first outcome could not be stored"
        await asyncio.sleep(1)
        assert len(at.arrivals) == told
        await pillarbox.pool.execute("DROP TRIGGER full_disk ON webhook_attempts")
        await at.wait_for(EVENTS)
        async with asyncio.timeout(20):
            while await on.owed():
                await asyncio.sleep(0.05)
        assert len({arrival.event for arrival in at.arrivals}) == len(at.arrivals) == EVENTS
