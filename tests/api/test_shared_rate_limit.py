"""The limit of a team over several nodes, in scripted windows: nodes that share nothing but the database.

The time of the nodes is a clock that the test moves, and the same instants are told to the database. So each
story is a count, whatever the machine does meanwhile. Conventions section 7, docs/decisions/0054 (API-04).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from kit.clock import START, ManualClock
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.security import rate_queries
from pillarbox.kernel.security.rate_limit import Windows, WindowState
from pillarbox.kernel.security.rate_portions import Portions, QuotaGrant, QuotaRequest
from pillarbox.kernel.security.team_rate import GATHER, QUESTIONS, TeamRate

STEP = 0.005
"""Seconds between two steps of a story. An answer comes with the next step, unless the database is slow."""


class Node:
    """One node: its memory, its clock (which says what it likes), and the questions that are under way."""

    def __init__(self, nodes: int, ahead: float) -> None:
        self.nodes = nodes
        self.clock = ManualClock(START + timedelta(seconds=ahead))
        self.clock.advance(ahead)
        self.portions = Portions(shared_memory.create(), self.clock)
        self.due: dict[bytes, int] = {}
        self.due_in = 0
        self.under_way: list[tuple[int, list[QuotaRequest], dict[bytes, QuotaGrant], float]] = []

    def request(self, team: UUID, limit: int) -> WindowState:
        offer = self.portions.take(team.bytes, limit, self.nodes)
        if offer.must_ask:
            if not self.due or offer.may_wait:
                self.due_in = 0 if offer.may_wait else round(GATHER / STEP)
            self.due[team.bytes] = limit
        return offer.taken

    def hear(self) -> None:
        """Take the answers that have arrived."""
        waiting = []
        for steps, questions, answers, sent in self.under_way:
            if steps > 1:
                waiting.append((steps - 1, questions, answers, sent))
                continue
            for question in questions:
                self.portions.apply(question, answers[question.key], sent)
        self.under_way = waiting


class Story:
    """Several nodes, and one database that answers after so many steps; None: not at all."""

    def __init__(self, conn: asyncpg.Connection, nodes: int, steps: int | None) -> None:
        self.conn = conn
        self.nodes = [Node(nodes, 3.7 * number) for number in range(nodes)]
        self.steps = steps
        self.now = START
        self.team = uuid4()
        self.questions = 0
        self.refused = 0

    async def run(self, limit: int, rates: Iterable[float], seconds: float) -> list[int]:
        """Requests at these rates per second, for so long; how many each node let through."""
        rates = list(rates)
        let_through = [0] * len(self.nodes)
        due = [0.0] * len(self.nodes)
        for _ in range(round(seconds / STEP)):
            for place, node in enumerate(self.nodes):
                node.hear()
                due[place] += rates[place] * STEP
                while due[place] >= 1.0:
                    due[place] -= 1.0
                    allowed = node.request(self.team, limit).allowed
                    let_through[place] += allowed
                    self.refused += not allowed
                await self.ask(node)
            self.now += timedelta(seconds=STEP)
            for node in self.nodes:
                node.clock.advance(STEP)
        return let_through

    async def ask(self, node: Node) -> None:
        if node.due_in > 0:
            node.due_in -= 1
            return
        found = [node.portions.question(key, limit, node.nodes) for key, limit in node.due.items()]
        questions = [question for question in found if question is not None]
        node.due = {}
        if not questions or self.steps is None:
            return
        self.questions += len(questions)
        answers = await rate_queries.take_portions(self.conn, questions, node.nodes, self.now)
        node.under_way.append((self.steps, questions, answers, node.clock.boottime()))


@asynccontextmanager
async def story(url: str, nodes: int = 2, steps: int | None = 1) -> AsyncIterator[Story]:
    conn = await asyncpg.connect(url)
    try:
        yield Story(conn, nodes, steps)
    finally:
        await conn.close()


@pytest.mark.parametrize("limit", [1, 2, 10, 100, 10_000])
@pytest.mark.parametrize("nodes", [2, 3])
async def test_nodes_that_all_want_more_hold_the_limit_together(
    database_url: str, limit: int, nodes: int
) -> None:
    seconds = 3 if limit > 1000 else 6
    async with story(database_url, nodes) as scene:
        together = sum(await scene.run(limit, [2 * limit + 20] * nodes, seconds))
        assert 0.8 * seconds * limit <= together <= 1.2 * seconds * limit


@pytest.mark.parametrize("limit", [1, 10, 100, 10_000])
@pytest.mark.parametrize("nodes", [2, 5])
async def test_one_node_may_use_nearly_all_of_it(database_url: str, limit: int, nodes: int) -> None:
    seconds = 3 if limit > 1000 else 6
    async with story(database_url, nodes) as scene:
        busy, *others = await scene.run(limit, [2 * limit + 20] + [0] * (nodes - 1), seconds)
        assert sum(others) == 0
        assert 0.8 * seconds * limit <= busy <= seconds * limit


@pytest.mark.parametrize("rates", [(9.5, 0), (6, 3), (4.5, 4.5)])
async def test_a_team_below_its_limit_is_hardly_ever_refused(
    database_url: str, rates: tuple[float, float]
) -> None:
    """Where both nodes are busy, one may lack what the other has taken and does not need."""
    async with story(database_url) as scene:
        let_through = sum(await scene.run(10, rates, 20.0))
        assert scene.refused <= (0.05 * let_through if all(rates) else 0)


@pytest.mark.parametrize(
    ("limit", "rates"), [(10, (20, 3)), (10, (6, 6)), (100, (300, 30)), (1000, (2000, 300))]
)
async def test_uneven_load(database_url: str, limit: int, rates: tuple[int, int]) -> None:
    async with story(database_url) as scene:
        let_through = await scene.run(limit, rates, 8.0)
        assert 0.8 * 8 * limit <= sum(let_through) <= 1.2 * 8 * limit


async def test_load_that_moves_to_the_other_node(database_url: str) -> None:
    async with story(database_url) as scene:
        for rates in ([300, 0], [0, 300]) * 3:
            assert 80 <= sum(await scene.run(100, rates, 1.0)) <= 120


async def test_what_is_not_told_at_once_is_told_later(database_url: str) -> None:
    """One node always has as much to let through as it need not tell in one window."""
    async with story(database_url) as scene:
        assert sum(await scene.run(10, [30, 2], 20.0)) <= 1.08 * 20 * 10


async def test_a_quiet_team_asks_nothing(database_url: str) -> None:
    async with story(database_url) as scene:
        assert await scene.run(10, [0.4, 0.45], 10.1) == [4, 4]
        assert sum(await scene.run(1000, [40, 45], 5.0)) >= 423
        assert scene.questions == 0
        await scene.run(10, [0, 0], 5.0)
        assert scene.questions == 0


async def test_a_busy_team_asks_little(database_url: str) -> None:
    """Once a node knows what a second needs it takes it at once."""
    async with story(database_url) as scene:
        await scene.run(10_000, [12_000, 0], 1.0)
        before = scene.questions
        await scene.run(10_000, [12_000, 0], 2.0)
        assert scene.questions - before <= 2 * 12
        before = scene.questions
        await scene.run(10, [12, 12], 5.0)
        assert scene.questions - before <= 5 * 2 * 3


@pytest.mark.parametrize("steps", [4, 20, 60])
async def test_a_slow_database(database_url: str, steps: int) -> None:
    """Answers after 20, 100 and 300 ms. What is let through meanwhile is taken from later windows."""
    async with story(database_url, steps=steps) as scene:
        for limit, rates in ((10, (40, 40)), (100, (300, 300)), (100, (300, 10))):
            await scene.run(limit, (0, 0), 3.0)
            together = sum(await scene.run(limit, rates, 8.0))
            assert 0.5 * 8 * limit <= together <= 1.2 * 8 * limit, (limit, rates)


@pytest.mark.parametrize("limit", [1, 10, 100])
async def test_without_a_database_each_node_has_its_equal_part(database_url: str, limit: int) -> None:
    async with story(database_url, steps=None) as scene:
        let_through = await scene.run(limit, [3 * limit + 5] * 2, 5.0)
        for node in let_through:
            assert 0.8 * 5 * max(1, limit // 2) <= node <= 5 * max(1, limit // 2)
        scene.steps = 1
        await scene.run(limit, [0, 0], 1.0)
        assert sum(await scene.run(limit, [3 * limit + 5] * 2, 5.0)) <= 1.2 * 5 * limit


async def test_a_node_that_is_killed_gives_its_portion_back_with_the_window(database_url: str) -> None:
    """It had taken its share of a window and dies. The other has all of the next one."""
    async with story(database_url) as scene:
        await scene.run(100, [300, 300], 2.0)
        await scene.run(100, [0, 300], 1.0)
        assert 80 <= (await scene.run(100, [0, 300], 1.0))[1] <= 120
        assert 240 <= (await scene.run(100, [0, 300], 3.0))[1] <= 300


@pytest.mark.parametrize("seconds", [-3600, -5, 5, 3600])
async def test_the_limit_holds_when_the_clock_of_the_database_is_set(database_url: str, seconds: int) -> None:
    """A window never lasts longer than a second, whatever the clock said when it began."""
    async with story(database_url) as scene:
        await scene.run(100, [300, 300], 2.0)
        scene.now += timedelta(seconds=seconds)
        await scene.run(100, [300, 300], 2.0)
        assert 400 <= sum(await scene.run(100, [300, 300], 5.0)) <= 600


async def test_nodes_that_a_clock_has_dated_ahead_do_not_live_on(database_url: str) -> None:
    async with story(database_url) as scene:
        await scene.conn.execute("INSERT INTO rate_nodes VALUES ('killed', now() + interval '1 hour')")
        assert await rate_queries.show_node(scene.conn, "alive") == 1


async def test_a_limit_that_changes_holds_from_the_next_window(database_url: str) -> None:
    async with story(database_url) as scene:
        await scene.run(100, [300, 300], 2.0)
        await scene.run(20, [300, 300], 1.0)
        assert 0.8 * 100 <= sum(await scene.run(20, [300, 300], 5.0)) <= 1.2 * 100
        await scene.run(200, [300, 300], 1.0)
        assert 0.8 * 1000 <= sum(await scene.run(200, [300, 300], 5.0)) <= 1.2 * 1000


async def test_headers_count_down_and_are_those_of_the_contract(database_url: str) -> None:
    """Conventions section 7: `remaining` never says more than there is, and 0 with a refusal."""
    async with story(database_url) as scene:
        one, two = scene.nodes
        first = one.request(scene.team, 10)
        assert first == WindowState(allowed=True, limit=10, remaining=9, reset=1)
        for _ in range(3):
            await scene.run(10, [0, 0], STEP)
            two.request(scene.team, 10)
            await scene.ask(two)
        await scene.run(10, [0, 0], 2 * STEP)
        seen = []
        for _ in range(12):
            seen.append(one.request(scene.team, 10))
            await scene.ask(one)
            await scene.run(10, [0, 0], 2 * STEP)
        assert {taken.limit for taken in seen} == {10}
        assert {taken.reset for taken in seen} == {1}
        remaining = [taken.remaining for taken in seen]
        assert remaining == sorted(remaining, reverse=True)
        assert remaining[-1] == 0
        assert not seen[-1].allowed
        assert all(taken.remaining == 0 for taken in seen if not taken.allowed)


async def test_any_load_at_any_latency(database_url: str) -> None:
    """Loads that change every half second, over one to four nodes, with answers that come soon or late."""
    chance = random.Random(17)
    for _ in range(12):
        nodes, limit = chance.randint(2, 4), chance.choice([1, 3, 10, 50, 400])
        async with story(database_url, nodes, steps=chance.choice([1, 2, 10])) as scene:
            together = 0
            for _ in range(16):
                rates = [chance.choice([0, limit // 4, limit, 3 * limit]) for _ in range(nodes)]
                together += sum(await scene.run(limit, rates, 0.5))
            assert together <= 1.2 * 8 * limit + limit, (nodes, limit, scene.steps)


@asynccontextmanager
async def waiting_requests(url: str) -> AsyncIterator[tuple[list[asyncio.Task[WindowState]], ManualClock]]:
    """Ten requests at once at one of two nodes: it lets through its equal part, the others wait."""
    clock, fd, team = ManualClock(), shared_memory.create(), uuid4()
    pool = await open_pool(url, limit=1)
    rate = TeamRate(Windows(fd, clock), fd, pool, clock)
    rate.nodes = 2
    asked = QUESTIONS.value(("granted",))
    requests = [asyncio.create_task(rate.take(team, 10)) for _ in range(10)]
    while QUESTIONS.value(("granted",)) == asked:
        assert sum(request.done() for request in requests) in {0, 5}
        await asyncio.sleep(0)
    try:
        yield requests, clock
    finally:
        await rate.leave()
        await pool.close()


async def test_a_burst_waits_for_the_portion_that_is_on_its_way(database_url: str) -> None:
    async with waiting_requests(database_url) as (requests, clock):
        clock.advance(0.001)
        assert [taken.allowed for taken in await asyncio.gather(*requests)] == [True] * 10


async def test_without_an_answer_a_request_waits_eight_milliseconds(database_url: str) -> None:
    clock, fd, team = ManualClock(), shared_memory.create(), uuid4()
    pool = await open_pool(database_url, limit=1)
    rate = TeamRate(Windows(fd, clock), fd, pool, clock)
    rate.nodes = 2
    async with pool.acquire():
        assert all([(await rate.take(team, 10)).allowed for _ in range(5)])
        late = asyncio.create_task(rate.take(team, 10))
        for _ in range(7):
            await clock.slept(0.001)
            clock.advance(0.001)
        await clock.slept(0.001)
        assert not late.done()
        # Sums of milliseconds are not exact: it is past eight in any case.
        clock.advance(0.0015)
        assert await late == WindowState(allowed=False, limit=10, remaining=0, reset=1)
        assert not (await rate.take(team, 10)).allowed
        await rate.leave()
    await pool.close()


async def test_a_node_alone_counts_exactly_and_asks_nobody(database_url: str) -> None:
    clock, fd, team = ManualClock(), shared_memory.create(), uuid4()
    pool = await open_pool(database_url, limit=1)
    rate = TeamRate(Windows(fd, clock), fd, pool, clock)
    await rate.look()
    assert rate.nodes == 1
    await pool.close()
    assert [(await rate.take(team, 10)).allowed for _ in range(12)] == [True] * 10 + [False] * 2


async def test_processes_of_a_node_know_what_its_first_one_has_found(database_url: str) -> None:
    clock = ManualClock()
    pool = await open_pool(database_url, limit=2)
    fd, other_fd = shared_memory.create(), shared_memory.create()
    first = TeamRate(Windows(fd, clock), fd, pool, clock)
    second = TeamRate(Windows(fd, clock), fd, pool, clock, is_first=False)
    other = TeamRate(Windows(other_fd, clock), other_fd, pool, clock)
    loop = asyncio.create_task(second.run())
    try:
        await other.look()
        for nodes in (2, 1):
            await first.look()
            await clock.slept(1.0)
            clock.advance(1.0)
            await clock.slept(1.0)
            assert (first.nodes, second.nodes) == (nodes, nodes)
            await other.leave()
    finally:
        loop.cancel()
        await pool.close()
