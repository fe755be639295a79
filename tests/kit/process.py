"""Pillarbox as the operator runs it, in processes that a test may kill.

`served` is one `pillarbox serve` with its database, seen from outside. `WorkerProcesses` makes single
workers that are there in a tenth of a second: a parent that has imported everything forks them, without a
supervisor.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path

import asyncpg

from kit.brought import INVARIANTS
from kit.prepared_cluster import put_database
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.process.faults import VARIABLE
from pillarbox.kernel.process.secrets_channel import ask
from pillarbox.teams import bootstrap
from repository.running import TESTS, Lines, Watched, children_of, command_of

KEY = "re_harbor01_abcdefghijklmnopqrstuvwx"
PATIENCE = 60.0
POLL = 0.05

LEFT = "SELECT count(*) FROM recipients WHERE state <> ALL ($1::text[])"
DONE = ["delivered", "bounced", "failed", "suppressed", "canceled", "complained"]

HURRY = "UPDATE deliveries SET due_at = now() WHERE owner IS NULL AND due_at < '9999-01-01'"
OPEN = """
    SELECT destination, count(*), max(tries), max(last_reply), max(reason), count(owner),
           min(due_at - now()), max(uncertain), max(begun)
      FROM deliveries GROUP BY 1
"""
AGE = """
    UPDATE deliveries SET first_attempt_at = now() - interval '30 days'
     WHERE owner IS NULL AND tries >= $1
"""


def environment(fault: str = "", sources: Path = TESTS.parent / "src") -> dict[str, str]:
    """Return our environment, with the sources of this checkout (or of another one) and without settings."""
    made = {name: text for name, text in os.environ.items() if not name.startswith("PILLARBOX_")}
    made["PYTHONPATH"] = f"{TESTS}:{sources}"
    if fault:
        made[VARIABLE] = fault
    return made


class Served:
    """A running `pillarbox serve`."""

    def __init__(
        self, data: Path, settings: Mapping[str, str], fault: str = "", sources: Path = TESTS.parent / "src"
    ) -> None:
        given = {
            "data": str(data),
            "http": "127.0.0.1:0",
            "smtp": "off",
            "submission": "off",
            "processes": "2",
            "log": "json",
            "rate_limit": "0",
            "require_verified_domain": "never",
            "initial_api_key": KEY,
            "hostname": "mx.pillar.example",
            **settings,
        }
        flags = [word for name, text in given.items() for word in (f"--{name.replace('_', '-')}", text)]
        self.data = data
        if sources == TESTS.parent / "src" and "database_url" not in given:
            put_database(data)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pillarbox", "serve", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(fault, sources),
        )
        self.out = Lines(self.process.stdout)
        self.log = Lines(self.process.stderr)

    def ready(self) -> tuple[str, int]:
        """Return the host and port of the HTTP listener, once all listeners are open."""
        line = self.out.wait_for("ready")
        host, _, port = dict(part.split("=") for part in line.split()[1:])["http"].rpartition(":")
        return host, int(port)

    @property
    def database_url(self) -> str:
        url: str = ask(self.data)["settings"]["database_url"]
        return url

    def workers(self) -> list[int]:
        return [pid for pid in children_of(self.process.pid) if b"pillarbox.worker" in command_of(pid)]

    def postmaster(self) -> int:
        (found,) = [pid for pid in children_of(self.process.pid) if b"bin/postgres" in command_of(pid)]
        return found

    def kill_a_worker(self, chance: random.Random) -> int | None:
        """Send SIGKILL to one of the workers; return None where all are dead already."""
        if not (alive := self.workers()):
            return None
        victim = chance.choice(alive)
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        return victim

    def stop(self) -> int:
        """Send SIGTERM; return the exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def end(self) -> None:
        """End the server, whatever state it is in: it is gone afterwards."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                family = Watched(children_of(self.process.pid))
                self.process.kill()
                self.process.wait()
                family.all_ended()


@contextmanager
def served(
    data: Path, *, fault: str = "", sources: Path = TESTS.parent / "src", **settings: str
) -> Iterator[Served]:
    """Run `pillarbox serve` until it is ready, with these settings besides those of every test; it ends with
    the block."""
    running = Served(data, settings, fault, sources)
    try:
        running.ready()
        yield running
    finally:
        running.end()


def verified(data: Path, **settings: str) -> None:
    """Assert that `pillarbox verify` finds no gap."""
    flags = [word for name, text in settings.items() for word in (f"--{name.replace('_', '-')}", text)]
    done = subprocess.run(
        [sys.executable, "-m", "pillarbox", "verify", "--data", str(data), *flags],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr


async def reconciled(url: str) -> None:
    """Assert without a process that emails, recipients, work, history and metrics fit together."""
    pool = await asyncpg.create_pool(url, min_size=1, max_size=1)
    try:
        found = await reconcile(pool, 10, INVARIANTS)
    finally:
        await pool.close()
    assert found.gaps == [], found.gaps


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Yield a connection for as long as the block runs."""
    conn = await asyncpg.connect(url)
    try:
        yield conn
    finally:
        await conn.close()


async def settled(url: str, seconds: float) -> float:
    """Return, with the seconds it took, when no recipient is open any more."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    while (left := await _left(url)) != 0:
        if loop.time() - started > seconds:
            async with connected(url) as conn:
                waiting = [tuple(row) for row in await conn.fetch(OPEN)]
            raise AssertionError(f"{left} recipients are still open after {seconds} s: {waiting}")
        await asyncio.sleep(POLL)
    return loop.time() - started


async def ended(url: str, seconds: float, *, hurries: int) -> None:
    """Return when no recipient is open any more, in a hurry: whoever waits for a retry gets it at once, and
    after so many the last one."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with connected(url) as conn:
        while await conn.fetchval(LEFT, DONE):
            await conn.execute(HURRY)
            await conn.execute(AGE, hurries)
            await asyncio.sleep(POLL * 4)
            if loop.time() - started > seconds:
                raise AssertionError(f"still open: {[tuple(row) for row in await conn.fetch(OPEN)]}")


async def _left(url: str) -> int | None:
    """Return how many recipients are open; None where the database does not answer."""
    try:
        conn = await asyncpg.connect(url, timeout=5)
    except (OSError, asyncpg.PostgresError):
        return None
    try:
        return int(await conn.fetchval(LEFT, DONE))
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return None
    finally:
        conn.terminate()


async def first_team(url: str) -> None:
    """Make the team of `KEY`, in a database that nobody has served yet."""
    async with connected(url) as conn, conn.transaction():
        ids = Ids(SystemClock())
        await bootstrap.first_team(conn, email="ops@harbor.example", initial_key=KEY, ids=ids)


@cache
def parent_of_workers() -> subprocess.Popen[str]:
    """Return the parent of workers, one for all tests of a session; it ends when its standard input does."""
    return subprocess.Popen(
        [sys.executable, "-m", "kit.fork_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=TESTS,
        env=environment(),
    )


class WorkerProcesses:
    """Single workers, forked. They share a listener that stays open when one of them dies."""

    def __init__(self, database_url: str, data: Path, **settings: str) -> None:
        given = {
            "data": str(data),
            "database_url": database_url,
            "rate_limit": "0",
            "require_verified_domain": "never",
            "hostname": "mx.pillar.example",
            "log": "json",
            **settings,
        }
        self.at = "127.0.0.1", int(self._ask("open", settings=given))

    def start(self, fault: str = "", *, place: int = 0) -> int:
        """Start the process of a worker with these faults, and return when it is ready; its place must
        be free."""
        pid = int(self._ask("start", place, fault=fault))
        assert pid, "the worker did not get ready"
        return pid

    def died(self, *, place: int = 0) -> int:
        """Wait for the end of the worker; its exit status, negative for a signal."""
        return int(self._ask("wait", place))

    def kill(self, *, place: int = 0) -> int:
        """Send SIGKILL, and wait."""
        return int(self._ask("kill", place))

    def stop(self, *, place: int = 0) -> int:
        """Send SIGTERM, and wait."""
        return int(self._ask("stop", place))

    def close(self) -> None:
        """End all workers at once."""
        self._ask("close")

    def _ask(self, what: str, place: int = 0, **words: object) -> str:
        parent = parent_of_workers()
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(json.dumps({"ask": what, "place": place, **words}) + "\n")
        parent.stdin.flush()
        return parent.stdout.readline().strip()


@contextmanager
def worker_processes(database_url: str, data: Path, **settings: str) -> Iterator[WorkerProcesses]:
    made = WorkerProcesses(database_url, data, **settings)
    try:
        yield made
    finally:
        made.close()
