"""Who waits for a result that others wait for as well gives up in time, and ends it for nobody."""

from __future__ import annotations

import asyncio

import pytest

from pillarbox.kernel.postgres.time_limit import AlreadyRuns, TimeLimit, all_ended, shared, to_its_end


async def test_who_gives_up_does_not_end_it_for_others() -> None:
    result: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    patient = asyncio.create_task(shared(result))
    with TimeLimit(0.01), pytest.raises(TimeoutError):
        await shared(result)
    assert not result.done()
    result.set_result(7)
    assert await patient == 7


async def test_the_wait_is_taken_off_the_limit() -> None:
    result: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.02, result.set_result, 7)
    with TimeLimit(5.0) as limit:
        assert await shared(result) == 7
    assert limit.left < 5.0


async def test_a_failure_is_the_callers() -> None:
    result: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(result.set_exception, LookupError())
    with TimeLimit(), pytest.raises(LookupError):
        await shared(result)


@pytest.mark.parametrize("whose", ["the caller", "the result"])
async def test_a_cancellation_is_no_time_out(whose: str) -> None:
    result: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def ask() -> int:
        with TimeLimit():
            return await shared(result)

    caller = asyncio.create_task(ask())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    (caller if whose == "the caller" else result).cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert result.cancelled() == (whose == "the result")


async def test_work_goes_on_once_and_the_stop_waits_for_it() -> None:
    """Where its caller leaves, too; a second one of its name is refused."""
    may_end, ended = asyncio.Event(), []

    async def work(name: str) -> None:
        await may_end.wait()
        ended.append(name)

    caller = asyncio.create_task(to_its_end(work("a"), "a"))
    await asyncio.sleep(0)
    with pytest.raises(AlreadyRuns):
        await to_its_end(work("second"), "a")
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await all_ended(0.01)
    assert ended == []
    may_end.set()
    await all_ended(5)
    assert ended == ["a"]
    await to_its_end(work("again"), "a")
    assert ended == ["a", "again"]
