"""Counts that are given back: what turned out to be right does not count."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kit.clock import ManualClock
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.security.rate_limit import Windows, key_for

KEY = key_for("login of somebody")


@pytest.fixture
def memory() -> Iterator[int]:
    fd = shared_memory.create()
    yield fd
    os.close(fd)


def test_a_count_that_is_given_back_can_be_taken_again_in_every_process(memory: int) -> None:
    clock = ManualClock()
    one, other = Windows(memory, clock), Windows(memory, clock)
    assert [one.take(KEY, 2, 60).allowed for _ in range(3)] == [True, True, False]
    other.give_back(KEY)
    assert not one.is_spent(KEY, 2)
    assert [other.take(KEY, 2, 60).allowed for _ in range(2)] == [True, False]


def test_what_was_not_counted_is_not_given_back(memory: int) -> None:
    clock = ManualClock()
    windows = Windows(memory, clock)
    windows.give_back(KEY)
    assert windows.take(KEY, 1, 60).allowed
    clock.advance(61)
    windows.give_back(KEY)
    assert [windows.take(KEY, 1, 60).allowed for _ in range(2)] == [True, False]
