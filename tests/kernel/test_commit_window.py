"""Messages wait a moment for others, so that one commit takes them all."""

from __future__ import annotations

import asyncio

from kit.inbound_client import inbound_client
from kit.receiving_team import HELP, message, receiving_team
from kit.world import World
from pillarbox.kernel.postgres.commit_window import CommitWindow
from pillarbox.receiving.receive import MessageReceiver

LONG = 3600.0


async def is_waiting(task: asyncio.Task[None]) -> bool:
    """Whether it still waits when everything that could run has run."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return not task.done()


async def test_who_is_alone_does_not_wait() -> None:
    window = CommitWindow(LONG)
    window.expect().gone()
    task = asyncio.create_task(window.wait())
    assert not await is_waiting(task)


async def test_those_who_are_there_go_together_with_the_last_that_is_expected() -> None:
    window = CommitWindow(LONG)
    second, third = window.expect(), window.expect()
    waiting = [asyncio.create_task(window.wait()) for _ in range(2)]
    second.gone()
    second.gone()  # says nothing new
    assert all([await is_waiting(task) for task in waiting])
    third.gone()
    assert not any([await is_waiting(task) for task in waiting])


async def test_nobody_waits_twice_for_the_same_one() -> None:
    window = CommitWindow(0.001)
    late = window.expect()
    async with asyncio.timeout(10):
        await window.wait()
    assert not await is_waiting(asyncio.create_task(window.wait()))
    other = window.expect()
    late.gone()
    assert window._expected == 1, "it was given up before, and the other is still to come"
    other.gone()
    assert not await is_waiting(asyncio.create_task(window.wait()))


async def test_one_who_is_cancelled_keeps_nobody() -> None:
    window = CommitWindow(LONG)
    last = window.expect()
    first, second = (asyncio.create_task(window.wait()) for _ in range(2))
    assert await is_waiting(first)
    first.cancel()
    last.gone()
    await second
    await asyncio.gather(first, return_exceptions=True)
    assert first.cancelled()


async def test_however_a_transaction_ends_it_is_expected_no_longer(running: World) -> None:
    async with inbound_client(running) as post:
        await receiving_team(running)
        window = running.app.need(MessageReceiver)._commit_window
        assert (await post.deliver(message(), [HELP])).startswith("250")
        for last in ("RSET", "EHLO quay.example", "QUIT"):
            dialogue = await post.connect()
            await dialogue.offer([HELP])
            assert window._expected == 1, last
            await dialogue.say(last)
            assert window._expected == 0, last
