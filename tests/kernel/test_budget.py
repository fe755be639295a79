"""A bound on bytes that are held at once (architecture 6.5)."""

from __future__ import annotations

import asyncio

import pytest

from pillarbox.kernel.process.byte_budget import BudgetShare, ByteBudget, OwnedBudget


def has_turn(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled()


async def asked(share: BudgetShare) -> asyncio.Task[None]:
    task = asyncio.create_task(share.take())
    await asyncio.sleep(0)
    return task


async def test_whoever_does_not_fit_waits_its_turn() -> None:
    """In the order in which they came: a small one does not overtake for ever."""
    budget = ByteBudget(100)
    first, second, third = budget.of(60), budget.of(80), budget.of(10)
    await first.take()
    waiting = [await asked(second), await asked(third)]
    assert [has_turn(task) for task in waiting] == [False, False]
    first.give()
    first.give()
    await asyncio.sleep(0)
    assert [has_turn(task) for task in waiting] == [True, True]
    fourth = await asked(budget.of(11))
    assert not has_turn(fourth)
    third.give()
    await asyncio.sleep(0)
    assert has_turn(fourth)


async def test_what_is_larger_than_all_of_it_goes_alone() -> None:
    budget = ByteBudget(100)
    async with budget.of(1000):
        other = await asked(budget.of(1))
        assert not has_turn(other)
        async with budget.of(0):
            assert not has_turn(other)
    await other


@pytest.mark.parametrize("has_its_turn", [False, True])
async def test_who_gives_up_waiting_takes_nothing(has_its_turn: bool) -> None:
    budget = ByteBudget(100)
    first, gone, last = budget.of(100), budget.of(100), budget.of(100)
    await first.take()
    task, after = await asked(gone), await asked(last)
    if has_its_turn:
        first.give()
        task.cancel()
    else:
        task.cancel()
        first.give()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(5):
        await after


async def test_one_owner_leaves_room_to_the_others() -> None:
    budget = OwnedBudget(100, 40)

    async def hold(owner: str, size: int, until: asyncio.Event) -> None:
        async with budget.of(owner, size):
            await until.wait()

    free = asyncio.Event()
    greedy = [asyncio.create_task(hold("a", 40, free)) for _ in range(5)]
    await asyncio.sleep(0)
    async with asyncio.timeout(5), budget.of("b", 40):
        pass
    free.set()
    await asyncio.gather(*greedy)
    assert not budget._owners
