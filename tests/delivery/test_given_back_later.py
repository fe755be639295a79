"""Items that are to be given back while the database is away are free soon after it is back."""

from __future__ import annotations

from pathlib import Path

from kit.database_link import database_link
from kit.manual_world import clock_of, relayed_world
from kit.smtp_sink import Sink
from kit.world import World
from pillarbox.delivery.items import Item
from pillarbox.delivery.queries import ClaimShare
from pillarbox.delivery.queue.claims import ItemClaims

OWNED = "SELECT count(*) FROM deliveries WHERE owner IS NOT NULL"


async def claimed(pillarbox: World) -> list[Item]:
    """What is due, leased to this process and not begun."""
    clock_of(pillarbox).advance(0.001)
    claims = pillarbox.app.need(ItemClaims)
    [pair] = await claims.due()
    return await claims.claim([ClaimShare(pair, 50)])


async def test_what_could_not_be_given_back_is_free_when_work_is_looked_for(
    database_url: str, tmp_path: Path
) -> None:
    """It does not wait until its lease runs out."""
    async with database_link(database_url) as link, relayed_world(link.url, tmp_path) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        await team.send()
        items = await claimed(pillarbox)
        link.cut()
        await pillarbox.app.need(ItemClaims).give_back_soon(items)
        await link.open()
        assert await pillarbox.pool.fetchval(OWNED) == 1
        while await pillarbox.turn():
            pass
        await sink.messages(1)
        assert await pillarbox.pool.fetchval("SELECT uncertain FROM deliveries") is None


async def test_what_was_claimed_again_meanwhile_is_kept(relayed: tuple[World, Sink]) -> None:
    """It was given back, and the answer of the database was lost."""
    pillarbox, _ = relayed
    team = await pillarbox.team()
    await team.domain()
    await team.send()
    claims = pillarbox.app.need(ItemClaims)
    items = await claimed(pillarbox)
    await claims.give_back(items)
    claims.leave_for_later(items)
    [again] = await claimed(pillarbox)
    assert again.attempt == items[0].attempt + 1
    claims.leave_for_later(items)
    await claims.due()
    assert await pillarbox.pool.fetchval(OWNED) == 1
