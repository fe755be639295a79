"""When a lease has really run out, whatever the wall clock says (DUR-03, DUR-09)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from kit.clock import ManualClock
from kit.smtp_sink import USUAL, Sink
from kit.world import Team, world
from pillarbox.delivery.lease_expiry import CONFIRM_SECONDS, LEASE, MARGIN, RENEW_EVERY, Lease, LeaseExpiry
from pillarbox.kernel.security.secrets import KeyRing

START = datetime(2026, 10, 3, 8, 15, tzinfo=UTC)
LEASED = "SELECT leased_until FROM deliveries WHERE team_id = $1"


def lease(number: int, seconds: float = 0) -> Lease:
    return Lease(UUID(int=1), UUID(int=number), 0, START + timedelta(seconds=seconds))


def lost(expiry: LeaseExpiry, leases: list[Lease], boottime: float) -> list[Lease]:
    """What is lost a minute after `START`, by the wall clock."""
    return expiry.lost(leases, START + timedelta(minutes=1), boottime)


def test_a_lease_is_lost_when_it_stood_still_for_as_long_as_its_holder_trusts_it() -> None:
    """DUR-03: whatever the wall clocks say, the holder has begun nothing since."""
    assert RENEW_EVERY < CONFIRM_SECONDS == LEASE.total_seconds() - MARGIN
    expiry = LeaseExpiry()
    assert lost(expiry, [lease(1)], 100) == []
    assert lost(expiry, [lease(1), lease(2)], 100 + CONFIRM_SECONDS - 1) == []
    assert lost(expiry, [lease(1), lease(2)], 100 + CONFIRM_SECONDS) == [lease(1)]


def test_a_lease_that_is_overdue_is_watched_but_not_lost_before_its_end() -> None:
    expiry = LeaseExpiry()
    assert expiry.lost([lease(1, 8)], START, 100) == []
    assert expiry.lost([lease(1, 8)], START, 100 + CONFIRM_SECONDS) == []
    assert expiry.lost([lease(1, 8)], START + timedelta(seconds=9), 101 + CONFIRM_SECONDS) == [lease(1, 8)]


def test_a_lease_that_is_too_long_is_lost_when_it_stands_still() -> None:
    """DUR-09: a clock that was ahead gave it."""
    expiry = LeaseExpiry()
    assert expiry.lost([lease(1, 3600)], START, 100) == []
    assert expiry.lost([lease(1, 3600)], START, 100 + CONFIRM_SECONDS) == [lease(1, 3600)]


def test_a_renewal_begins_the_time_anew() -> None:
    expiry = LeaseExpiry()
    lost(expiry, [lease(1)], 100)
    assert lost(expiry, [lease(1, 10)], 100 + CONFIRM_SECONDS) == []
    assert lost(expiry, [lease(1, 10)], 100 + 2 * CONFIRM_SECONDS) == [lease(1, 10)]


def test_what_is_no_longer_suspect_is_dropped() -> None:
    expiry = LeaseExpiry()
    lost(expiry, [lease(1)], 100)
    assert lost(expiry, [], 105) == []
    assert lost(expiry, [lease(1)], 100 + CONFIRM_SECONDS) == []


def test_time_in_which_nothing_can_be_written_does_not_count() -> None:
    """A holder with an outcome cannot store it either, and does so before another process sends the mail."""
    expiry = LeaseExpiry()
    lost(expiry, [lease(1)], 100)
    expiry.restart()
    assert lost(expiry, [lease(1)], 100 + CONFIRM_SECONDS) == []
    assert lost(expiry, [lease(1)], 100 + 2 * CONFIRM_SECONDS) == [lease(1)]


async def renewed(team: Team, before: datetime) -> datetime:
    """The new end of the only lease."""
    async with asyncio.timeout(10):
        while (until := await team.db.value(LEASED)) == before:
            await asyncio.sleep(0.005)
    found: datetime = until
    return found


@pytest.mark.parametrize("jump", [3600, -3600])
async def test_a_jump_of_the_clock_loses_and_doubles_nothing(
    database_url: str, tmp_path: Path, jump: float
) -> None:
    """DUR-09: an hour ahead or back while a mail is on the wire; the other process leaves it alone."""
    clock = ManualClock()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with Sink() as sink:
        gate = asyncio.Event()
        sink.script("RCPT", (gate, USUAL))
        route = f"relay:smtp://127.0.0.1:{sink.port}"
        ring = KeyRing.generate_text()
        async with (
            world(database_url, tmp_path / "one", route=route, clock=clock, secret_key=ring) as one,
            world(
                database_url, tmp_path / "two", route=route, clock=clock, started=False, secret_key=ring
            ) as two,
        ):
            team = await one.team()
            await team.domain()
            email = await team.send()
            await sink.commands("RCPT")
            until = await team.db.value(LEASED)
            clock.jump(jump)
            for _ in range(4):
                assert await two.engine.look() == 0
                await clock.slept(RENEW_EVERY)
                clock.advance(RENEW_EVERY)
                until = await renewed(team, until)
            gate.set()
            await one.engine.idle()
            assert len(sink.received) == 1
            last = (await team.events(email))[-1]
            assert (last["event"], last["uncertain"]) == ("delivered", False)
