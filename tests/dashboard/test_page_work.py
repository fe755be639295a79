"""Making pages of mail away from the event loop: in turn, within bounds, and not for who has left."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from pillarbox.capture import message
from pillarbox.dashboard import mail_html
from pillarbox.dashboard.page_work import PageWork
from pillarbox.kernel.http.body import ClientGone
from pillarbox.kernel.wire.problems import ServerOverloaded
from pillarbox.kernel.work.team_turns import MOST_OF_ONE, MOST_WAITING

ONE, OTHER = UUID(int=1), UUID(int=2)


@pytest.fixture
def work() -> Iterator[PageWork]:
    made = PageWork()
    yield made
    made.close()


class Gate:
    """Work that goes on until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        self.go.wait(20)
        return "done"


async def held(work: PageWork, team_id: UUID = ONE) -> tuple[Gate, asyncio.Task[str]]:
    """The thread at work, until the gate is opened."""
    gate = Gate()
    task = asyncio.create_task(work.do(team_id, gate))
    await asyncio.to_thread(gate.begun.wait, 20)
    return gate, task


async def test_teams_take_turns(work: PageWork) -> None:
    gate, first = await held(work)
    order: list[str] = []
    waiting = [
        asyncio.create_task(work.do(team, lambda name=name: order.append(name)))  # type: ignore[misc]
        for team, name in ((ONE, "a"), (ONE, "b"), (ONE, "c"), (OTHER, "x"), (OTHER, "y"))
    ]
    await asyncio.sleep(0)
    gate.go.set()
    assert await first == "done"
    await asyncio.gather(*waiting)
    assert order == ["a", "x", "b", "y", "c"]


async def test_what_waits_is_bounded_for_one_team_and_for_all(work: PageWork) -> None:
    gate, first = await held(work)
    waiting = [asyncio.create_task(work.do(ONE, int)) for _ in range(MOST_OF_ONE)]
    await asyncio.sleep(0)
    with pytest.raises(ServerOverloaded):
        await work.do(ONE, int)
    waiting += [asyncio.create_task(work.do(uuid4(), int)) for _ in range(MOST_WAITING - MOST_OF_ONE)]
    await asyncio.sleep(0)
    with pytest.raises(ServerOverloaded):
        await work.do(uuid4(), int)
    gate.go.set()
    await first
    assert await asyncio.gather(*waiting) == [0] * MOST_WAITING
    assert await work.do(ONE, lambda: 7) == 7


async def test_nothing_is_begun_for_who_has_left(work: PageWork) -> None:
    gate, first = await held(work)
    begun: list[int] = []
    gone = [
        asyncio.create_task(work.do(ONE, lambda: begun.append(1), lambda: True)) for _ in range(MOST_OF_ONE)
    ]
    await asyncio.sleep(0)
    # Those who left take nobody's place.
    stays = asyncio.create_task(work.do(ONE, lambda: "here"))
    await asyncio.sleep(0)
    gate.go.set()
    assert (await first, await stays) == ("done", "here")
    assert [type(found) for found in await asyncio.gather(*gone, return_exceptions=True)] == (
        [ClientGone] * MOST_OF_ONE
    )
    assert begun == []


async def test_whoever_is_canceled_holds_nobody_up(work: PageWork) -> None:
    gate, first = await held(work)
    second, third = (asyncio.create_task(work.do(ONE, lambda: "done")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    await asyncio.sleep(0)
    assert not third.done()
    gate.go.set()
    assert await third == "done"
    assert await work.do(ONE, lambda: "again") == "again"


async def test_a_failure_is_the_askers_and_the_next_turn_comes(work: PageWork) -> None:
    with pytest.raises(ZeroDivisionError):
        await work.do(ONE, lambda: 1 // 0)
    assert await work.do(ONE, lambda: "next") == "next"


async def test_after_the_end_nothing_is_begun(work: PageWork) -> None:
    gate, first = await held(work)
    waiting = asyncio.create_task(work.do(ONE, int))
    await asyncio.sleep(0)
    began = time.monotonic()
    work.close()
    assert time.monotonic() - began < 5
    for task in (waiting, asyncio.create_task(work.do(ONE, int))):
        with pytest.raises(ServerOverloaded):
            await task
    gate.go.set()
    assert await first == "done"


async def test_the_same_html_is_cleaned_once(work: PageWork) -> None:
    html = "<p>" + "x" * 1000
    first = await work.do(ONE, lambda: work.cleaned(html))
    assert await work.do(OTHER, lambda: work.cleaned(html)) is first
    assert await work.do(ONE, lambda: work.cleaned(html + "y")) is not first


async def test_what_is_kept_is_bounded() -> None:
    work = PageWork(remembered=100_000)
    html = [f"<p>{number}" + "x" * 20_000 for number in range(6)]
    kept = [work.cleaned(text) for text in html]
    assert work.cleaned(html[5]) is kept[5]
    assert work.cleaned(html[0]) is not kept[0]
    large = "<p>" + "x" * 60_000
    assert work.cleaned(large) is not work.cleaned(large)
    work.close()


@pytest.mark.parametrize(
    "html",
    ["<b a='x'>" * 60_000, "<ul><li>" * 60_000, "<" * 500_000, "<p style='" + "a:b;" * 7000 + "'>" * 10],
    ids=("formatting", "lists", "no tags", "styles"),
)
async def test_the_event_loop_goes_on_while_hostile_html_is_cleaned(work: PageWork, html: str) -> None:
    """On a free machine it waits for 20 ms at most."""
    making = asyncio.create_task(work.do(ONE, lambda: mail_html.document(mail_html.clean(html))))
    assert await longest_pause(making) < 1


async def test_the_event_loop_goes_on_while_a_large_message_is_read(work: PageWork) -> None:
    raw = b"Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n" + b"QUJD" * 4_000_000
    making = asyncio.create_task(work.do(ONE, lambda: message.read(raw)))
    assert await longest_pause(making) < 1
    assert making.result().parts[0].size == 12_000_000


async def longest_pause(making: asyncio.Task[object]) -> float:
    """The longest time for which nothing else could run until the task was done."""
    longest, last = 0.0, time.monotonic()
    while not making.done():
        await asyncio.sleep(0.001)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    return longest
