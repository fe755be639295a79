"""The queue has a cap: beyond it mail is refused until it has become less (DUR-10)."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from kit.client import error
from kit.dumps import counts
from kit.manual_world import manual_world, relayed_world
from kit.world import World, mail
from pillarbox.delivery.queue.queue_limit import QueueLimit

FILL = """
    INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, released, created_at)
    SELECT $1, gen_random_uuid(), 0, 'quay.example', now(), true, now() FROM generate_series(1, $2)
"""


async def test_mail_is_refused_while_too_much_waits(database_url: str, tmp_path: Path) -> None:
    """DUR-10: nothing is written for what is refused; reading works; it is taken again by itself."""
    async with relayed_world(database_url, tmp_path, queue_limit="2") as (pillarbox, _):
        team, depth = await pillarbox.team(), pillarbox.app.need(QueueLimit)
        await team.domain()
        sent = [await team.send() for _ in range(3)]
        await depth.look()
        before = await counts(pillarbox.pool)
        for path, body in (("/emails", mail()), ("/emails/batch", [mail()])):
            answer = await team.post(path, body)
            assert answer.status_code == 503, answer.text
            assert error(answer)[2] == "Too much mail is waiting to be delivered. Try again later."
            assert answer.headers["retry-after"] == "30"
        assert await counts(pillarbox.pool) == before
        assert (await team.email(sent[0]))["id"] == sent[0]
        await pillarbox.turn()
        await depth.look()
        await team.send()


async def test_without_a_cap_nobody_looks(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, queue_limit="0") as pillarbox:
        depth = pillarbox.app.need(QueueLimit)
        await depth.run()
        depth.check()


async def test_a_long_queue_is_estimated(pillarbox: World) -> None:
    """From a few of its pages, near enough to distinguish twice the cap and half of it."""
    await pillarbox.pool.execute(FILL, UUID(int=1), 6000)
    for most, is_over in ((3000, True), (12_000, False), (600_000, False)):
        depth = QueueLimit(pillarbox.pool, pillarbox.clock, most, pages=40)
        await depth.look()
        assert depth.is_over is is_over


async def test_what_was_known_is_kept_while_the_database_is_away(pillarbox: World) -> None:
    await pillarbox.pool.execute(FILL, UUID(int=1), 3)
    depth = QueueLimit(pillarbox.pool, pillarbox.clock, 2)
    await depth.look()
    away = QueueLimit(pillarbox.app.kit.pools.requests, pillarbox.clock, 2)
    await pillarbox.pool.execute("ALTER TABLE deliveries RENAME TO elsewhere")
    for one in (depth, away):
        await one.look()
    assert (depth.is_over, away.is_over) == (True, False)
