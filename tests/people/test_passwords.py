"""Hashing of passwords: argon2id with its settings, four at once on a machine, and the rest in turn."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher, extract_parameters

from kit.clock import ManualClock
from kit.people import HASHED, PASSWORD
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.process import shared_memory
from pillarbox.people.passwords import (
    AT_ONCE,
    OF_NOBODY,
    PATIENCE,
    PAUSE,
    Complaint,
    PasswordHashingBusy,
    Passwords,
    complaint,
)

HOLDER = """
import fcntl, sys
fd, first, count, begin = map(int, sys.argv[1:])
for place in range(first, first + count):
    fcntl.lockf(fd, fcntl.LOCK_EX, 1, begin + place)
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def memory() -> Iterator[int]:
    fd = shared_memory.create()
    yield fd
    os.close(fd)


def holder(fd: int, count: int) -> subprocess.Popen[str]:
    """Another process of the machine that hashes so many passwords."""
    words = [sys.executable, "-c", HOLDER, str(fd), "0", str(count), str(shared_memory.SIZE)]
    running = subprocess.Popen(words, pass_fds=[fd], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "held\n"
    return running


async def test_a_password_is_argon2id_of_19_mib_at_least(memory: int) -> None:
    """SEC-02: memory, passes and lanes; what is compared for nobody costs the same."""
    passwords = Passwords(memory, SystemClock())
    for stored in (await passwords.hashed(PASSWORD), OF_NOBODY, HASHED):
        found = extract_parameters(stored)
        assert stored.startswith("$argon2id$")
        assert (found.memory_cost, found.time_cost, found.parallelism) == (19 * 1024, 2, 1)
        assert not passwords.is_outdated(stored)
    assert await passwords.matches(HASHED, PASSWORD)
    assert not await passwords.matches(HASHED, PASSWORD + " ")
    assert not await passwords.matches(None, PASSWORD)
    assert not await passwords.matches("no hash", PASSWORD)
    weaker = PasswordHasher(time_cost=1, memory_cost=8 * 1024, parallelism=1).hash(PASSWORD)
    assert await passwords.matches(weaker, PASSWORD)
    assert passwords.is_outdated(weaker)
    passwords.close()


async def test_at_most_four_run_at_once_in_one_process(memory: int) -> None:
    passwords = Passwords(memory, SystemClock())
    running = most = 0

    def counted() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash("x")
        running -= 1

    await asyncio.gather(*[passwords._do(counted) for _ in range(5 * AT_ONCE)])
    assert most <= AT_ONCE
    passwords.close()


async def test_processes_of_a_machine_share_the_places_and_whoever_waits_too_long_comes_again(
    memory: int,
) -> None:
    """While another process has all places nobody is let in; when it dies its places are free at once."""
    clock = ManualClock()
    passwords, other = Passwords(memory, clock), holder(memory, AT_ONCE)
    waiting = asyncio.ensure_future(passwords.matches(HASHED, PASSWORD))
    await clock.slept(PAUSE)
    assert not waiting.done()
    clock.advance(PATIENCE)
    with pytest.raises(PasswordHashingBusy):
        await waiting
    again = asyncio.ensure_future(passwords.matches(HASHED, PASSWORD))
    await clock.slept(PAUSE)
    other.kill()
    other.wait()
    clock.advance(PAUSE)
    assert await again
    passwords.close()


async def test_one_free_place_is_found_and_given_back(memory: int) -> None:
    passwords, other = Passwords(memory, SystemClock()), holder(memory, AT_ONCE - 1)
    for _ in range(3):
        assert await passwords.matches(HASHED, PASSWORD)
    fcntl.lockf(memory, fcntl.LOCK_UN, 1, shared_memory.SIZE)
    other.kill()
    other.wait()
    passwords.close()


@pytest.mark.parametrize(
    ("password", "wanted"),
    [
        ("nine char", Complaint.SHORT),
        ("ten chars!", None),
        ("berth " * 21, None),
        ("ab cd" * 26, Complaint.LONG),
        ("qwertyuiop", Complaint.COMMON),
        ("QwertyUiop1!", Complaint.COMMON),
        ("abababababab", Complaint.COMMON),
        ("1234567890", Complaint.COMMON),
        ("ada@quay.example", Complaint.OWN),
        ("Ada Lovelace", Complaint.OWN),
        ("дом у моря стоит", None),
    ],
)
def test_what_speaks_against_a_password(password: str, wanted: Complaint | None) -> None:
    """SEC-02: ten characters at least, and none of the commonest."""
    assert complaint(password, "ada@quay.example", "Ada Lovelace") is wanted
