"""Who may hold how much of the memory for bodies that come in pieces (docs/decisions/0032)."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from pillarbox.kernel.http.upload_pool import Pool, PooledUpload

MINUTE = 60.0


def upload(*pools: Pool, size: int, first: int | None = None) -> PooledUpload:
    """A body of that size, or one that is not announced and may become so large."""
    return PooledUpload(first or size, size, 0.0, MINUTE, pools)


def waiting(one: PooledUpload) -> PooledUpload:
    one.waits(asyncio.get_running_loop().create_future(), 2.0)
    return one


def test_what_is_announced_holds_nothing() -> None:
    pool = Pool(100, 9)
    for _ in range(8):
        upload(pool, size=80).grow(1)
    assert pool.permits(upload(pool, size=90), 90)


def test_two_halves_never_block_each_other() -> None:
    """One may take what the other does not need to be completed, and not a byte more."""
    pool = Pool(100, 9)
    first, second = upload(pool, size=80), upload(pool, size=80)
    first.grow(50)
    assert pool.permits(second, 20)
    assert not pool.permits(second, 21)
    second.grow(20)
    assert pool.permits(first, 80)
    first.grow(80)
    assert not pool.permits(second, 21)
    first.complete()
    assert not pool.permits(second, 41)
    first.end()
    assert pool.permits(second, 80)


def test_a_small_one_goes_on_beside_a_large_one_that_waits() -> None:
    pool = Pool(100, 9)
    first, second = upload(pool, size=90), upload(pool, size=90)
    first.grow(60)
    second.grow(10)
    assert not pool.permits(second, 11)
    assert pool.permits(upload(pool, size=20), 20)


def test_a_large_one_goes_on_beside_small_ones() -> None:
    pool = Pool(100, 9)
    small = [upload(pool, size=10) for _ in range(3)]
    for one in small:
        one.grow(5)
    assert pool.permits(upload(pool, size=100), 80)


def test_what_is_larger_than_all_of_it_goes_alone() -> None:
    pool = Pool(100, 9)
    huge = upload(pool, size=1000)
    huge.grow(100)
    assert pool.permits(huge, 1000)
    huge.grow(1000)
    assert not pool.permits(upload(pool, size=1), 1)
    huge.end()
    huge.end()
    assert pool.permits(upload(pool, size=100), 100)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_granted_all_are_completed(seed: int) -> None:
    """In any order of pieces: as long as one is not complete, one of them may go on."""
    random = Random(seed)
    pool = Pool(100, 99)
    running = [upload(pool, size=random.randint(1, 130)) for _ in range(12)]
    while running:
        able = [one for one in running if pool.permits(one, min(one.most, one.held + 7))]
        assert able
        one = random.choice(able)
        one.grow(min(one.most, one.held + 7))
        if one.held == one.most:
            one.end()
            running.remove(one)
    assert pool.permits(upload(pool, size=100), 100)


def test_the_slowest_goes_if_it_will_not_be_complete_in_time() -> None:
    pool = Pool(10_000, 9)
    fast, slow, stalled = [upload(pool, size=2000) for _ in range(3)]
    for second in range(1, 11):
        fast.add_received(100, float(second))
        slow.add_received(10, float(second))
    stalled.add_received(1000, 1.0)
    assert pool.slowest(10.0) is stalled
    stalled.end()
    assert pool.slowest(10.0) is slow
    slow.end()
    assert pool.slowest(10.0) is None
    assert pool.slowest(11.1) is fast, "it has sent nothing for a second"


def test_for_who_has_waited_long_the_lowest_rate_goes_although_it_is_in_time() -> None:
    """Whoever is about to be complete stays."""
    pool = Pool(100_000, 9)
    fast, trickling, ending = [upload(pool, size=2000) for _ in range(3)]
    for one, size in ((fast, 100), (trickling, 1800), (ending, 1990)):
        one.grow(2000)
        one.add_received(size, 1.0)
    for second in range(2, 11):
        fast.add_received(100, float(second))
        trickling.add_received(5, float(second))
        ending.add_received(1, float(second))
    assert pool.slowest(10.0) is None
    assert pool.least_rate(10.0, within=5) is trickling, "the rest of the other is one byte"
    trickling.refusal = "too slow"
    assert pool.least_rate(10.0, within=5) is None, "one is going"
    trickling.end()
    assert pool.least_rate(10.0, within=3) is fast
    assert pool.least_rate(10.0, within=10) is None


def test_what_is_counted_ahead_has_not_come() -> None:
    """Bytes are counted in steps; of the last one 60 000 may be missing."""
    pool = Pool(100_000, 9)
    last = upload(pool, size=65_536)
    last.grow(65_536)
    for second in range(1, 11):
        last.add_received(1, float(second))
    assert pool.slowest(10.0) is last


def test_one_at_a_time_goes_and_nobody_in_the_first_second() -> None:
    pool = Pool(100_000, 9)
    first, _ = upload(pool, size=50_000), upload(pool, size=40_000)
    assert pool.slowest(0.9) is None
    assert pool.slowest(1.1) is first
    first.refusal = "too slow"
    assert pool.slowest(1.1) is None


async def test_an_upload_that_waits_for_space_is_not_counted_as_slow() -> None:
    pool = Pool(100_000, 9)
    stalled, other = upload(pool, size=10_000), waiting(upload(pool, size=90_000))
    assert pool.slowest(9.0) is stalled
    stalled.add_received(10_000, 9.0)
    assert pool.slowest(9.0) is None
    other.goes_on(9.0)
    assert other.waited(20.0) == 7.0
    assert pool.slowest(9.9) is None
    stalled.add_received(10_000, 9.9)
    assert pool.slowest(10.1) is other


async def test_where_all_wait_for_each_other_whoever_holds_least_goes() -> None:
    pool = Pool(100, 9)
    first, second = upload(pool, size=90), upload(pool, size=90)
    first.grow(60)
    second.grow(30)
    assert pool.slowest(0.5) is None
    waiting(first)
    assert waiting(second) is pool.slowest(0.5)


def test_bodies_that_are_not_announced_are_expected_to_be_small_until_they_are_large() -> None:
    """Small ones come together; of two large ones the second waits where it stopped to be small."""
    pool = Pool(100, 99)
    small = [upload(pool, size=90, first=5) for _ in range(10)]
    for one in small:
        assert pool.permits(one, 5)
        one.grow(5)
    first, second, *others = small
    for one in others:
        one.end()
    first.grow(20)
    assert pool.permits(second, 10)
    assert not pool.permits(second, 11), "what the first one may need is not free"
    assert pool.permits(first, 90)
    first.grow(90)
    first.complete()
    assert not pool.permits(second, 11)
    first.end()
    assert pool.permits(second, 90)


def test_only_what_is_on_its_way_fills_a_pool() -> None:
    pool = Pool(100, 2)
    first, second = upload(pool, size=10), upload(pool, size=10)
    assert pool.is_full
    first.complete()
    assert not pool.is_full
    first.end()
    second.end()
    assert pool.coming == 0
