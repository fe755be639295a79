"""The rate limit: exact over processes, with the contract's headers (conventions section 7, API-04)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from hypothesis import given, settings
from hypothesis import strategies as st

from kit import probe_routes
from kit.client import UNLIMITED, error, http_server, sending_key
from pillarbox.api_keys.credentials import KeyCredentials
from pillarbox.kernel.http.pipeline import HttpSettings
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.kernel.security.shared_slots import WAYS
from pillarbox.teams.bootstrap import set_limits


class SteppedClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def boottime(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


def test_a_window_opens_with_the_first_request_after_the_last_one_ended() -> None:
    clock = SteppedClock()
    windows, key = Windows(shared_memory.create(), clock), uuid4().bytes
    first = [windows.take(key, 3) for _ in range(5)]
    assert [taken.allowed for taken in first] == [True, True, True, False, False]
    assert [taken.remaining for taken in first] == [2, 1, 0, 0, 0]
    assert {taken.reset for taken in first} == {1}
    clock.seconds += 0.999
    assert not windows.take(key, 3).allowed
    clock.seconds += 0.5
    assert [windows.take(key, 3).allowed for _ in range(4)] == [True, True, True, False]
    clock.seconds += 0.999
    assert not windows.take(key, 3).allowed


def test_longer_windows_tell_the_time_to_wait_rounded_up() -> None:
    clock = SteppedClock()
    windows, key = Windows(shared_memory.create(), clock), key_for("192.0.2.1")
    assert windows.take(key, 1, 60.0).reset == 60
    clock.seconds += 30.5
    assert windows.take(key, 1, 60.0).reset == 30


@given(st.lists(st.tuples(st.integers(0, 3 * WAYS), st.sampled_from([0.0, 0.1, 0.6])), max_size=200))
@settings(max_examples=50, deadline=None)
def test_keys_of_one_bucket_do_not_disturb_each_other(steps: list[tuple[int, float]]) -> None:
    """As long as no more keys are alive than a bucket holds, each counts as if it were alone."""
    clock = SteppedClock()
    shared = Windows(shared_memory.create(), clock)
    alone: dict[int, tuple[float, int]] = {}
    live: dict[int, float] = {}
    for number, pause in steps:
        clock.seconds += pause
        live = {key: end for key, end in live.items() if clock.seconds < end}
        if number not in live and len(live) == WAYS:
            continue
        key = number.to_bytes(8, "little") + bytes(8)
        start, count = alone.get(number, (-9.0, 0))
        if clock.seconds >= start + 1.0:
            start, count = clock.seconds, 0
        taken = shared.take(key, 3)
        assert taken.allowed == (count < 3)
        alone[number] = (start, count + taken.allowed)
        live.setdefault(number, start + 1.0)


COUNTER = """
import sys
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.security.rate_limit import Windows
windows = Windows(int(sys.argv[1]), SystemClock())
sys.stdout.write("r"); sys.stdout.flush(); sys.stdin.read(1)
print(sum(windows.take(bytes(16), 5000, 600.0).allowed for _ in range(4000)))
"""


def test_the_count_is_exact_over_processes() -> None:
    """Two processes take 4,000 places each of 5,000: together they get exactly 5,000."""
    fd = shared_memory.create()
    os.set_inheritable(fd, True)
    counters = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTER, str(fd)],
            pass_fds=[fd],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for counter in counters:
        assert counter.stdout is not None
        assert counter.stdout.read(1) == "r"
    granted = [int(out) for out, _ in (counter.communicate("g") for counter in counters)]
    assert sum(granted) == 5000


async def test_headers_and_429(database_url: str) -> None:
    clock = SteppedClock()
    async with http_server(database_url, probe_routes, settings=HttpSettings(), clock=clock) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            first = await client.get("/domains")
            assert {name: first.headers[name] for name in first.headers if name.startswith("ratelimit")} == {
                "ratelimit-limit": "10",
                "ratelimit-policy": "10;w=1",
                "ratelimit-remaining": "9",
                "ratelimit-reset": "1",
            }
            # Errors, HEAD and other credentials of the team count too; unauthenticated requests do not.
            assert (await client.post("/domains", content=b"{")).headers["ratelimit-remaining"] == "8"
            assert (await client.head("/domains/x")).headers["ratelimit-remaining"] == "7"
            token = await sending_key(client)
            async with api.client(token) as sender, api.client() as anyone:
                refused = await sender.get("/domains")
                assert error(refused)[1] == "restricted_api_key"
                assert refused.headers["ratelimit-remaining"] == "5"
                assert "ratelimit-limit" not in (await anyone.get("/domains")).headers
            for left in ("4", "3", "2", "1", "0"):
                assert (await client.get("/domains")).headers["ratelimit-remaining"] == left
            for _ in range(2):
                over = await client.get("/domains")
                assert error(over)[:2] == (429, "rate_limit_exceeded")
                assert over.headers["retry-after"] == "1"
                assert over.headers["ratelimit-remaining"] == "0"
            assert (await client.get("/health")).status_code == 200
            clock.seconds += 1.0
            assert (await client.get("/domains")).headers["ratelimit-remaining"] == "9"


async def test_teams_have_their_own_windows_and_limits(database_url: str) -> None:
    clock = SteppedClock()
    async with http_server(database_url, settings=HttpSettings(rate_limit=2), clock=clock) as api:
        one, two = await api.team("One"), await api.team("Two")
        async with api.client(one.token) as first, api.client(two.token) as second:
            assert [(await first.get("/domains")).status_code for _ in range(3)] == [200, 200, 429]
            assert (await second.get("/domains")).headers["ratelimit-remaining"] == "1"
            await set_limits(api.pool, one.id, {"rate_limit": 5})
            api.services.use(KeyCredentials).forget(one.id)
            assert (await first.get("/domains")).headers["ratelimit-limit"] == "5"
            await set_limits(api.pool, one.id, {"rate_limit": 0})
            api.services.use(KeyCredentials).forget(one.id)
            assert "ratelimit-limit" not in (await first.get("/domains")).headers


async def test_processes_share_one_window(database_url: str) -> None:
    fd = shared_memory.create()
    clock = SteppedClock()
    limited = replace(UNLIMITED, rate_limit=7)
    async with (
        http_server(database_url, settings=limited, windows_fd=fd, clock=clock) as one,
        http_server(database_url, settings=limited, windows_fd=fd, clock=clock) as two,
    ):
        team = await one.team()
        async with one.client(team.token) as first, two.client(team.token) as second:
            answers = await asyncio.gather(*(client.get("/domains") for client in (first, second) * 6))
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] * 7 + [429] * 5


async def test_sixty_failed_authentications_a_minute_then_429(database_url: str) -> None:
    """SEC-03."""
    clock = SteppedClock()
    async with http_server(database_url, clock=clock) as api:
        team = await api.team()
        async with api.client() as anyone, api.client(team.token) as owner:
            for _ in range(60):
                assert (await anyone.get("/domains")).status_code == 401
            over = await anyone.get("/domains", headers={"authorization": "Bearer re_x"})
            assert error(over)[:2] == (429, "rate_limit_exceeded")
            assert over.headers["retry-after"] == "60"
            # Who has a key is not locked out by a neighbour behind the same address (SEC-03).
            assert (await owner.get("/domains")).status_code == 200
            assert (await anyone.get("/health")).status_code == 200
            clock.seconds += 60
            assert (await anyone.get("/domains")).status_code == 401
