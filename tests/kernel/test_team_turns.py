"""What requests hold at once is bounded, and teams take turns (architecture 6.5)."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from pillarbox.kernel.http.body import ClientGone
from pillarbox.kernel.wire.problems import ServerOverloaded
from pillarbox.kernel.work.team_turns import MOST_OF_ONE, TeamTurns

ONE, OTHER = UUID(int=1), UUID(int=2)


@pytest.fixture
def turns() -> TeamTurns:
    return TeamTurns(100, "Too many.")


async def asked(turns: TeamTurns, team: UUID, size: int) -> asyncio.Task[None]:
    task = asyncio.create_task(turns.take(team, size))
    await asyncio.sleep(0)
    return task


async def given(turns: TeamTurns, size: int) -> None:
    turns.give(size)
    await asyncio.sleep(0)


async def test_a_team_waits_for_one_request_of_another(turns: TeamTurns) -> None:
    await turns.take(ONE, 80)
    first, second, other = [await asked(turns, team, 80) for team in (ONE, ONE, OTHER)]
    await given(turns, 80)
    await given(turns, 80)
    assert (first.done(), second.done(), other.done()) == (True, False, True)
    second.cancel()


async def test_small_ones_do_not_overtake_a_large_one_for_ever(turns: TeamTurns) -> None:
    await turns.take(ONE, 60)
    large, small = await asked(turns, OTHER, 50), await asked(turns, ONE, 10)
    assert (large.done(), small.done()) == (False, False)
    await given(turns, 60)
    assert (large.done(), small.done()) == (True, True)


async def test_what_is_larger_than_all_goes_alone(turns: TeamTurns) -> None:
    async with turns.of(ONE, 1000):
        other = await asked(turns, OTHER, 1)
        assert not other.done()
    await other
    assert not (await asked(turns, ONE, 100)).done()


async def test_what_waits_is_bounded_and_told_when_to_come_again(turns: TeamTurns) -> None:
    async with turns.of(ONE, 100):
        waiting = [await asked(turns, ONE, 1) for _ in range(MOST_OF_ONE)]
        with pytest.raises(ServerOverloaded) as refused:
            await turns.take(ONE, 1)
        assert refused.value.headers == {"retry-after": "2"}
        waiting.append(await asked(turns, OTHER, 1))
    await asyncio.gather(*waiting)


@pytest.mark.parametrize("has_its_turn", [False, True])
async def test_who_is_canceled_holds_nothing(turns: TeamTurns, *, has_its_turn: bool) -> None:
    await turns.take(ONE, 100)
    gone, after = await asked(turns, ONE, 100), await asked(turns, OTHER, 100)
    if has_its_turn:
        turns.give(100)
        gone.cancel()
    else:
        gone.cancel()
        await asyncio.sleep(0)
        turns.give(100)
    async with asyncio.timeout(5):
        await after


async def test_who_has_left_is_not_served(turns: TeamTurns) -> None:
    with pytest.raises(ClientGone):
        await turns.take(ONE, 100, lambda: True)
    assert (await asked(turns, OTHER, 100)).done()
