"""What every test may ask for: a PostgreSQL of its own, and `async def` tests."""

from __future__ import annotations

import asyncio
import gc
import inspect
import ipaddress
import itertools
import re
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from kit import file_order
from kit.chosen_tests import Chosen
from kit.session_setup import prepare
from pillarbox.kernel.postgres.embedded import EmbeddedPostgres
from pillarbox.kernel.postgres.migrations import migrate_url

pytest.register_assert_rewrite("kit.ledger", "kit.process", "kit.world")

TEMPLATE = "migrated"
RANDOM = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)


def only_loopback(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: a test that reaches for another machine is wrong, whatever would answer."""
    if event not in ("socket.connect", "socket.sendto"):
        return
    address = arguments[1]
    if not isinstance(address, tuple) or address[0] == "localhost":
        return
    if not ipaddress.ip_address(address[0].split("%")[0]).is_loopback:
        raise PermissionError(f"tests talk to loopback only, not to {address[0]}")


sys.addaudithook(only_loopback)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    prepare()
    # Until all tests are collected nothing of what is made is garbage.
    gc.disable()
    if config.getoption("--record-seconds") and not is_worker(config):
        config.pluginmanager.register(file_order.Recorder())


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs a part of the tests for another one."""
    return hasattr(config, "workerinput")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the slow sweeps too")
    parser.addoption("--sweeps", action="store_true", help="run the sweeps of a whole run too, as CI does")
    parser.addoption(
        "--slow-of", action="append", default=[], metavar="FILE", help="run those of this file too"
    )
    parser.addoption("--record-seconds", action="store_true", help="note how long each file takes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = Chosen.of(config)
    for item in items:
        if "slow" in item.keywords and chosen.has_slow(item.nodeid):
            item.add_marker(pytest.mark.timeout(0))
        elif (option := chosen.missing_option(item)) is not None:
            item.add_marker(pytest.mark.skip(reason=f"runs only with {option}"))
    if is_worker(config):
        items[:] = file_order.longest_first(items, file_order.recorded(config.getoption("--slow-of")))


def pytest_make_parametrize_id(val: object) -> str | None:
    """The name of a case is the same in all processes that share a run, so no random id stands in it."""
    if isinstance(val, str) and RANDOM.search(val):
        return ascii(RANDOM.sub("some-id", val))[1:-1]
    return None


def pytest_collection_finish() -> None:
    """What was collected stays until the end: the collector of garbage need not look through it again.

    Nobody thaws it (`tests/repository/test_garbage.py`): every collection would take seconds from then on."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def test_…` in an event loop of its own. Its fixtures are made before the loop. Those that
    are asynchronous contexts are entered in it, and the test gets what they yield."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(entered(pyfuncitem.obj, pyfuncitem.funcargs, pyfuncitem._fixtureinfo.argnames))
    return True


HANGS_AFTER = 220
"""Seconds after which a test says what its tasks wait for, a little before it is ended."""


def print_tasks() -> None:
    """Print where each task of the running loop waits: the stacks of threads do not show it."""
    for task in asyncio.all_tasks():
        print(task)
        waiting: Any = task.get_coro()
        while waiting is not None:
            frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "ag_frame", None)
            if frame is not None:
                print(f"    {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
            waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "ag_await", None)


async def entered(
    test: Callable[..., Awaitable[None]], made: Mapping[str, Any], names: Sequence[str]
) -> None:
    asyncio.get_running_loop().call_later(HANGS_AFTER, print_tasks)
    async with AsyncExitStack() as stack:
        arguments = {}
        for name in names:
            value = made[name]
            is_context = isinstance(value, AbstractAsyncContextManager)
            arguments[name] = await stack.enter_async_context(value) if is_context else value
        await test(**arguments)


class Databases:
    """Fresh databases, each a copy of the migrated template."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._conn: asyncpg.Connection = self._loop.run_until_complete(
            asyncpg.connect(server.url("postgres"))
        )

    def fresh(self, *, template: str = TEMPLATE) -> str:
        """The URL of a new database: migrated and empty, or blank with template='template0'."""
        name = f"test_{next(self._numbers)}"
        self.run(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        return self._server.url(name)

    def drop(self, url: str) -> None:
        """Remove it, whoever is still connected."""
        name = url.removeprefix("postgresql:///").split("?")[0]
        self.run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def run(self, sql: str) -> None:
        """One statement in the database `postgres`, over a connection that is kept."""
        self._loop.run_until_complete(self._conn.execute(sql))

    def close(self) -> None:
        self._loop.run_until_complete(self._conn.close())
        self._loop.close()


@pytest.fixture
def is_thorough(request: pytest.FixtureRequest) -> bool:
    """Whether slow tests of this file are wanted: a sweep then looks at everything."""
    return Chosen.of(request.config).has_slow(request.node.nodeid)


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A server for this test session alone, without fsync."""
    folder = Path(tempfile.mkdtemp(prefix="pillarbox-test-"))
    server = EmbeddedPostgres(folder / "postgres", durable=False)
    asyncio.run(server.start())
    try:
        yield server
    finally:
        asyncio.run(server.stop())
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def databases(postgres: EmbeddedPostgres) -> Iterator[Databases]:
    """For fixtures of a wider scope than one test: `databases.fresh()` and `databases.drop(url)`."""
    made = Databases(postgres)
    made.run(f'CREATE DATABASE "{TEMPLATE}"')
    asyncio.run(migrate_url(postgres.url(TEMPLATE)))
    yield made
    made.close()


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """The URL of a migrated database that this test has for itself."""
    url = databases.fresh()
    yield url
    databases.drop(url)


@pytest.fixture
def pillarbox(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Any]:
    """A Pillarbox whose time and work the test moves by hand (`kit.manual_world`)."""
    from kit.manual_world import manual_world

    return manual_world(database_url, tmp_path)


@pytest.fixture
def running(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Any]:
    """A Pillarbox that works by itself, on the clock of the machine (`kit.world`)."""
    from kit.world import world

    return world(database_url, tmp_path)


@pytest.fixture
def relayed(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Any]:
    """A Pillarbox as `pillarbox`, and the SMTP server to which it hands its mail (`kit.manual_world`)."""
    from kit.manual_world import relayed_world

    return relayed_world(database_url, tmp_path)


@pytest.fixture
def capture(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Any]:
    """A Pillarbox that keeps all mail, and the people who look at it (`kit.captured`)."""
    from kit.captured import capture_world

    return capture_world(database_url, tmp_path)


@pytest.fixture
def inbox(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Any]:
    """An empty inbox of the only team of such a Pillarbox (`kit.inbox_rows`)."""
    from kit.inbox_rows import inbox_world

    return inbox_world(database_url, tmp_path)
