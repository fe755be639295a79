"""How much received mail a team may have (INB-09)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.clock import ManualClock
from kit.inbound_client import inbound_client, receiving_domain
from kit.manual_world import clock_of, manual_world
from kit.world import Team, World
from pillarbox.kernel.plugin import PeriodicJobs

MAIL = b"From: ada@quay.example\r\nSubject: %d\r\n\r\n" + b"x" * 900 + b"\r\n"
HELP = "help@harbor.example"
FULL = "452 4.2.2 The mailbox is full, try again later"


async def octets(team: Team) -> int:
    return int(
        await team.world.pool.fetchval(
            "SELECT coalesce(sum(octets), 0) FROM usage_days WHERE team_id = $1", team.id
        )
    )


async def come_round(pillarbox: World, kind: str) -> None:
    """What comes round, now."""
    [found] = [r for r in pillarbox.app.need(PeriodicJobs) if r.kind == kind]
    await found.work()


async def test_a_full_team_puts_senders_off_until_there_is_room(
    database_url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = ManualClock()
    settings: dict[str, Any] = {"received_storage": "3000", "received_retention_days": "1"}
    async with (
        manual_world(database_url, tmp_path, clock, **settings) as pillarbox,
        inbound_client(pillarbox) as post,
    ):
        team = await pillarbox.team()
        await receiving_domain(team)
        other = await pillarbox.team("Quay")
        await receiving_domain(other, "quay.example")
        sizes = []
        for number in range(4):
            assert "receiving.nearly_full" not in "".join(capfd.readouterr())
            raw = MAIL % number
            assert (await post.deliver(raw, [HELP])).startswith("250 2.0.0 Ok, stored")
            assert (await post.deliver(raw, [HELP])) == "250 2.0.0 Ok, it was stored before"
            sizes.append(len(raw))
            clock.advance(1.001)
        assert await octets(team) == sum(sizes)
        dialogue = await post.connect()
        to = [HELP, "postmaster@harbor.example", "Abuse@harbor.example", "help@quay.example"]
        assert [answer[:9] for answer in await dialogue.offer(to)] == [
            "452 4.2.2", "250 2.1.5", "250 2.1.5", "250 2.1.5"
        ]  # fmt: skip
        assert (await dialogue.text(MAIL % 9)).startswith("250")
        assert (await post.deliver(MAIL % 5, [HELP])) == FULL
        assert "".join(capfd.readouterr()).count("receiving.nearly_full") == 1, "once an hour"
        clock.advance(24 * 3600 + 10)
        await come_round(pillarbox, "receiving.retention")
        assert (await octets(team), await octets(other)) == (0, 0)
        clock.advance(1.001)
        assert (await post.deliver(MAIL % 6, [HELP])).startswith("250")


async def test_who_is_nearly_full_is_reported_before_mail_is_put_off(
    database_url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = ManualClock()
    size = len(MAIL % 0)
    async with (
        manual_world(database_url, tmp_path, clock, received_storage=str(size * 10 + 1)) as pillarbox,
        inbound_client(pillarbox) as post,
    ):
        await receiving_domain(await pillarbox.team())
        for number in range(10):
            assert (await post.deliver(MAIL % number, [HELP])).startswith("250")
            clock.advance(1.001)
        assert "receiving.nearly_full" not in "".join(capfd.readouterr())
        assert (await post.deliver(MAIL % 3, [HELP])).startswith("250")
        assert "receiving.nearly_full" in "".join(capfd.readouterr())


async def test_without_a_limit_octets_are_counted_and_nobody_is_full(pillarbox: World) -> None:
    clock = clock_of(pillarbox)
    async with inbound_client(pillarbox) as post:
        team = await pillarbox.team()
        await receiving_domain(team)
        for number in range(2):
            assert (await post.deliver(MAIL % number, [HELP])).startswith("250")
        assert await octets(team) == 2 * len(MAIL % 0)
        await pillarbox.pool.execute("UPDATE usage_days SET day = day - 400, received = 0")
        clock.advance(1)
        await come_round(pillarbox, "usage.forget")
        assert await octets(team) == 2 * len(MAIL % 0), "a day is kept as long as its mail"
