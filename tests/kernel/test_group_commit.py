"""Group commit: shared commits, own answers, one bad row fails alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.postgres.group_commit import GroupCommit
from pillarbox.kernel.postgres.time_limit import TimeLimit
from pillarbox.kernel.wire.problems import DatabaseGone, OutcomeUnknown, ServerOverloaded


class Gone(Exception):  # noqa: N818
    """The database is away."""


class Store:
    """What was committed, and in which company; `gate` holds a commit back."""

    def __init__(self, *bad: str) -> None:
        self.commits: list[list[str]] = []
        self.bad = set(bad)
        self.gone = False
        self.gate: asyncio.Event | None = None

    async def flush(self, batch: Sequence[str]) -> list[str | BaseException]:
        if self.gate is not None:
            await self.gate.wait()
        if self.gone:
            raise Gone
        if self.bad & set(batch):
            raise ValueError("a row that the database refuses")
        self.commits.append(list(batch))
        return [item.upper() for item in batch]


async def test_those_who_arrive_during_a_commit_share_the_next_one() -> None:
    store = Store()
    store.gate = asyncio.Event()
    commits: GroupCommit[str, str] = GroupCommit(store.flush, flushers=1)
    first = asyncio.create_task(commits.submit("a"))
    await asyncio.sleep(0.01)
    others = [asyncio.create_task(commits.submit(item)) for item in "bcd"]
    await asyncio.sleep(0.01)
    store.gate.set()
    assert await first == "A"
    assert [await other for other in others] == ["B", "C", "D"]
    assert store.commits == [["a"], ["b", "c", "d"]]


@pytest.mark.parametrize("bad", ["", "b"])
async def test_those_who_wait_join_a_flush_that_they_fit(bad: str) -> None:
    """Each has its own answer, also where the flush fails for one of them."""
    store = Store(bad)
    began, gate = asyncio.Event(), asyncio.Event()

    async def flush(batch: Sequence[str]) -> list[str | BaseException]:
        began.set()
        await gate.wait()
        return await store.flush([*batch, *commits.join_flush(str.islower)])

    commits: GroupCommit[str, str] = GroupCommit(flush, flushers=1, most_items=3)
    assert commits.join_flush(str.islower) == []
    first = asyncio.create_task(commits.submit("a"))
    await began.wait()
    others = [asyncio.create_task(commits.submit(item)) for item in "bXcde"]
    while commits.weight < 6:
        await asyncio.sleep(0)
    gate.set()
    answers = await asyncio.gather(first, *others, return_exceptions=True)
    assert [answer if isinstance(answer, str) else "refused" for answer in answers] == [
        "A", "refused" if bad else "B", "X", "C", "D", "E",
    ]  # fmt: skip
    if bad:
        assert sorted(item for commit in store.commits for item in commit) == ["X", "a", "c", "d", "e"]
    else:
        assert store.commits == [["a", "b", "c"], ["X", "d", "e"]]
    assert commits.weight == 0


async def test_one_bad_row_never_fails_other_rows() -> None:
    store = Store("x")
    commits: GroupCommit[str, str] = GroupCommit(store.flush)
    answers = await asyncio.gather(*(commits.submit(item) for item in "abxcd"), return_exceptions=True)
    assert answers[:2] + answers[3:] == ["A", "B", "C", "D"]
    assert isinstance(answers[2], ValueError)
    assert sorted(item for commit in store.commits for item in commit) == ["a", "b", "c", "d"]


async def test_an_error_that_no_row_caused_is_raised_to_all_without_cutting() -> None:
    store = Store()
    store.gone = True
    commits: GroupCommit[str, str] = GroupCommit(store.flush, shared=(Gone,))
    answers = await asyncio.gather(*(commits.submit(item) for item in "abc"), return_exceptions=True)
    assert all(isinstance(answer, Gone) for answer in answers)
    store.gone = False
    assert await commits.submit("d") == "D"


async def test_an_exception_among_the_results_is_one_callers_own() -> None:
    async def flush(batch: Sequence[str]) -> list[str | BaseException]:
        return [KeyError(item) if item == "b" else item for item in batch]

    commits: GroupCommit[str, str] = GroupCommit(flush)
    answers = await asyncio.gather(*(commits.submit(item) for item in "abc"), return_exceptions=True)
    assert answers[0] == "a"
    assert isinstance(answers[1], KeyError)
    assert answers[2] == "c"


async def test_waiting_weight_is_bounded_and_said() -> None:
    """Architecture 6.5: backpressure is an answer, not memory."""
    store = Store()
    store.gate = asyncio.Event()
    commits: GroupCommit[str, str] = GroupCommit(store.flush, weigh=len, most_waiting=10)
    waiting = asyncio.create_task(commits.submit("12345678"))
    await asyncio.sleep(0.01)
    with pytest.raises(ServerOverloaded) as refused:
        await commits.submit("123")
    assert refused.value.headers == {"retry-after": "1"}
    store.gate.set()
    assert await waiting == "12345678"
    assert await commits.submit("123") == "123"
    assert commits.weight == 0


async def test_a_caller_that_goes_away_does_not_take_its_row_along() -> None:
    """The commit happens; only nobody waits for its answer."""
    store = Store()
    store.gate = asyncio.Event()
    commits: GroupCommit[str, str] = GroupCommit(store.flush)
    leaver = asyncio.create_task(commits.submit("a"))
    stayer = asyncio.create_task(commits.submit("b"))
    await asyncio.sleep(0.01)
    leaver.cancel()
    store.gate.set()
    assert await stayer == "B"
    await commits.drain()
    assert sorted(item for commit in store.commits for item in commit) == ["a", "b"]


async def test_nobody_is_forgotten_between_two_flushers() -> None:
    """One who arrives while the last flusher is leaving must not wait for the next arrival."""
    store = Store()
    commits: GroupCommit[str, str] = GroupCommit(store.flush, flushers=1)

    async def client(name: str) -> None:
        for _ in range(200):
            assert await commits.submit(name) == name.upper()

    async with asyncio.timeout(20):
        await asyncio.gather(*(client(name) for name in "abc"))
    assert sum(len(commit) for commit in store.commits) == 600


async def test_whose_time_is_over_is_answered_and_what_has_not_begun_is_not_done() -> None:
    """One flush hangs: its caller cannot know, whoever waits behind it was never begun, and others go on."""
    store = Store()
    store.gate = asyncio.Event()
    commits: GroupCommit[str, str] = GroupCommit(store.flush, flushers=1)

    async def limited(item: str) -> str:
        with TimeLimit(0.1):
            return await commits.submit(item)

    begun = asyncio.create_task(limited("a"))
    await asyncio.sleep(0.01)
    behind = asyncio.create_task(limited("b"))
    patient = asyncio.create_task(commits.submit("c"))
    with pytest.raises(OutcomeUnknown):
        await begun
    with pytest.raises(DatabaseGone) as refusal:
        await behind
    assert type(refusal.value) is DatabaseGone
    assert not patient.done()
    store.gate.set()
    assert await patient == "C"
    assert store.commits == [["a"], ["c"]]
    await commits.drain()
    assert commits.weight == 0


async def test_the_limit_of_one_caller_is_not_that_of_the_flush() -> None:
    """A flush carries out what many have asked for, and runs without the limit of whoever came first."""
    found: list[object] = []

    async def flush(batch: Sequence[str]) -> list[str | BaseException]:
        found.append(time_limit.current())
        return list(batch)

    commits: GroupCommit[str, str] = GroupCommit(flush)
    with TimeLimit() as limit:
        await commits.submit("a")
        assert time_limit.current() is limit
    assert found == [None]


async def test_the_limits_of_flushes_that_run_at_once_are_their_own() -> None:
    """What one of them sets for itself neither reaches the others nor stays behind."""
    seen: list[object] = []
    inside, done = asyncio.Event(), asyncio.Event()

    async def limited(batch: Sequence[str]) -> list[str | BaseException]:
        with TimeLimit(1.0):
            inside.set()
            await done.wait()
        return list(batch)

    async def background(batch: Sequence[str]) -> list[str | BaseException]:
        seen.append(time_limit.current())
        return list(batch)

    one: GroupCommit[str, str] = GroupCommit(limited)
    other: GroupCommit[str, str] = GroupCommit(background)
    first = asyncio.create_task(one.submit("a"))
    await inside.wait()
    await other.submit("b")
    done.set()
    await first
    await other.submit("c")
    assert seen == [None, None]
