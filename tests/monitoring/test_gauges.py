"""What stands behind single metrics: what is shown is what is (OPS-06)."""

from __future__ import annotations

import os
import signal
import ssl
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kit.manual_world import clock_of, manual_world
from kit.smtp_sink import Sink
from kit.world import World
from pillarbox.delivery.engine import Engine
from pillarbox.delivery.items import QUARANTINED
from pillarbox.delivery.queue.destination_metrics import LONG, OTHERS, SHOWN, DestinationCounts
from pillarbox.delivery.rate_control import HOLDS, REFUSED_MARGIN
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.observability.metrics import GREATEST, LEAST, SUFFIX, Gauge, MetricsFile, Numbers
from pillarbox.kernel.observability.prometheus import MetricsFiles
from pillarbox.kernel.postgres import bounded_pool
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.process.process_metrics import MeasuredProcess, ProcessMetrics
from pillarbox.kernel.process.supervisor_metrics import BUILD, REASONS, found_database, reason_of
from pillarbox.kernel.security.certificates import Certificate, self_made
from pillarbox.kernel.storage import storage_metrics
from pillarbox.kernel.storage.blobs import BlobFailed, BlobMissing, BlobStore, FolderBackend
from repository.running import Running, supervisor

CONNECTIONS = 3


def numbers_of(page: str, name: str) -> dict[tuple[str, ...], float]:
    """The samples of this name, by the values of their labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name
    }


# Several processes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("over", "shown"), [("sum", 7), (LEAST, 3), (GREATEST, 4)])
def test_a_gauge_says_what_becomes_of_the_values_of_several_processes(
    tmp_path: Path, over: str, shown: float
) -> None:
    """The time that a certificate is valid is no sum."""
    for pid, value in ((1, 3), (2, 4)):
        held = Numbers(
            name="held",
            kind="gauge",
            meaning="Held.",
            labels=(),
            bounds=(),
            values=[((), [value])],
            over=over,
        )
        (tmp_path / f"{pid}{SUFFIX}").write_bytes(msgspec.json.encode([held]))
    [value] = [sample.value for metric in MetricsFiles(tmp_path).collect() for sample in metric.samples]
    assert value == shown


def test_a_gauge_may_be_a_truth_value(tmp_path: Path) -> None:
    """One that could not be read back would take all metrics of its process with it."""
    Gauge("pillarbox_test_truth", "True.").read = lambda: {(): True}
    MetricsFile(tmp_path, SystemClock()).write()
    found = [metric for metric in MetricsFiles(tmp_path).collect() if metric.name == "pillarbox_test_truth"]
    assert [sample.value for metric in found for sample in metric.samples] == [1.0]


# Processes ------------------------------------------------------------------------------------------


def test_a_process_is_measured(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    registry.register(
        ProcessMetrics(
            lambda: [MeasuredProcess("worker", "0", os.getpid()), MeasuredProcess("worker", "1", 0)], tmp_path
        )
    )
    page = generate_latest(registry).decode()
    # Samples show their labels in alphabetical order.
    own = ("0", "worker")
    assert numbers_of(page, "pillarbox_process_cpu_seconds_total").keys() == {own}
    assert numbers_of(page, "pillarbox_process_cpu_seconds_total")[own] > 0
    assert numbers_of(page, "pillarbox_process_memory_bytes")[own] > 10_000_000
    files = numbers_of(page, "pillarbox_process_open_files")[own]
    assert 0 < files <= numbers_of(page, "pillarbox_process_max_files")[own]
    now = SystemClock().now().timestamp()
    assert now - 3600 < numbers_of(page, "pillarbox_process_start_time_seconds")[own] <= now


def test_a_process_that_hangs_is_told_by_the_age_of_its_numbers(tmp_path: Path) -> None:
    """Its counters and gauges stay as they were, as if all were well."""
    registry = CollectorRegistry()
    measured = [MeasuredProcess("worker", "0", os.getpid()), MeasuredProcess("fork_server", "", os.getpid())]
    registry.register(ProcessMetrics(lambda: measured, tmp_path))

    def silent() -> float:
        shown = numbers_of(generate_latest(registry).decode(), "pillarbox_process_silent_seconds")
        assert shown.keys() == {("0", "worker")}
        return shown[("0", "worker")]

    began = silent()
    assert began > 0
    file = tmp_path / f"{os.getpid()}{SUFFIX}"
    MetricsFile(tmp_path, SystemClock()).write()
    assert silent() < max(began, 60)
    os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 300))
    assert 300 <= silent() < 900
    os.utime(file, (file.stat().st_atime, file.stat().st_mtime + 9000))
    assert silent() == 0


def test_the_version_of_the_database_has_its_second_number() -> None:
    found_database(180006)
    [(_, _, shown)] = BUILD.read()
    assert shown == "18.6"


def test_a_process_whose_files_may_not_be_counted_is_measured_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An alert would take it for one that does not run."""

    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refused)
    registry = CollectorRegistry()
    registry.register(ProcessMetrics(lambda: [MeasuredProcess("worker", "0", os.getpid())], tmp_path))
    page = generate_latest(registry).decode()
    assert numbers_of(page, "pillarbox_process_start_time_seconds").keys() == {("0", "worker")}
    assert numbers_of(page, "pillarbox_process_open_files") == {}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (-signal.SIGKILL, "killed"),
        (-signal.SIGSEGV, "crashed"),
        (1, "failed"),
        (0, "ended"),
        (None, "not_started"),
    ],
)
def test_a_worker_ends_for_one_of_few_reasons(status: int | None, reason: str) -> None:
    assert reason_of(status) == reason
    assert reason in REASONS


def page_with(running: Running, name: str, labels: tuple[str, ...], value: float) -> str:
    """The metrics, once they say this; the supervisor writes its own once a second."""
    deadline = time.monotonic() + 30
    while numbers_of(page := running.get("/metrics", listener="metrics"), name).get(labels) != value:
        assert time.monotonic() < deadline, page
        time.sleep(0.05)
    return page


def test_restarts_are_counted_and_a_restart_makes_no_new_series(tmp_path: Path) -> None:
    with supervisor(tmp_path / "data", "--metrics", "127.0.0.1:0") as running:
        running.ready()
        page = page_with(running, "pillarbox_worker_restarts_total", ("killed",), 0)
        before = numbers_of(page, "pillarbox_process_start_time_seconds")
        assert before.keys() == {
            ("", "supervisor"),
            ("", "fork_server"),
            ("0", "worker"),
            ("1", "worker"),
            ("", "database"),
        }
        [build] = numbers_of(page, "pillarbox_build_info")
        assert all(build)
        os.kill(running.workers()[0], signal.SIGKILL)
        running.log.wait_for("worker.ready")
        page = page_with(running, "pillarbox_worker_restarts_total", ("killed",), 1)
        assert numbers_of(page, "pillarbox_process_start_time_seconds").keys() == before.keys()


def test_https_shows_how_long_its_certificate_is_valid_whatever_the_number_of_processes(
    tmp_path: Path,
) -> None:
    path = str(self_made(tmp_path, "localhost", SystemClock().now()))
    with supervisor(
        tmp_path / "data", "--metrics", "127.0.0.1:0", "--tls-cert", path, "--tls-key", path
    ) as running:
        running.ready()
        certificate = Certificate(Path(path), Path(path), SystemClock())
        url = f"https://{running.ready()['http']}/"
        context = ssl._create_unverified_context()
        deadline = time.monotonic() + 30
        seen: set[bytes] = set()
        while len(seen) < 2:
            assert time.monotonic() < deadline
            with urllib.request.urlopen(url, context=context, timeout=10) as answer:
                seen.add(answer.read())
        page = running.get("/metrics", listener="metrics")
        left = numbers_of(page, "pillarbox_tls_certificate_seconds")[("http",)]
        assert left == pytest.approx(certificate.seconds_left, abs=60)


# The database ---------------------------------------------------------------------------------------


@pytest.fixture
def narrow_url(databases: Any, database_url: str) -> Iterator[str]:
    """The database, for a role that may have a few connections."""
    role = "narrow"
    databases.run(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT {CONNECTIONS}")
    yield database_url.replace("user=pillarbox", f"user={role}")
    databases.run(f"DROP ROLE {role}")


async def test_a_database_without_a_connection_left_is_counted(narrow_url: str) -> None:
    before = bounded_pool.NOT_MADE.value(("too_many",))
    pool = await open_pool(narrow_url, limit=CONNECTIONS + 1)
    try:
        taken = [await pool.acquire() for _ in range(CONNECTIONS)]
        with pytest.raises(asyncpg.TooManyConnectionsError):
            await pool.acquire()
        assert bounded_pool.NOT_MADE.value(("too_many",)) == before + 1
        for conn in taken:
            await pool.release(conn)
    finally:
        await pool.close()


async def test_a_database_that_is_away_is_counted(database_url: str, tmp_path: Path) -> None:
    before = bounded_pool.NOT_MADE.value(("other",))
    with pytest.raises(OSError):
        await open_pool(f"postgresql://nobody@/nothing?host={tmp_path}", limit=1)
    assert bounded_pool.NOT_MADE.value(("other",)) == before + 1


# Blobs ----------------------------------------------------------------------------------------------


async def test_what_the_blob_store_does_and_fails_at_is_counted(tmp_path: Path) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    taken = {name: storage_metrics.TAKEN.count((name,)) for name in storage_metrics.OPERATIONS}
    failed, unread = (storage_metrics.ERRORS.value((name, "failed")) for name in ("put", "get"))
    store = BlobStore(FolderBackend(tmp_path / "works"))
    await store.put("a/1", b"1")
    assert await store.get("a/1") == b"1"
    assert [part async for part in store.stream("a/1")] == [b"1"]
    with pytest.raises(BlobMissing):
        await store.get("a/2")
    with pytest.raises(BlobFailed):
        await BlobStore(FolderBackend(tmp_path / "broken", sync=broken)).put("a/1", b"1")
    await store.close()
    now = {name: storage_metrics.TAKEN.count((name,)) - count for name, count in taken.items()}
    assert now == {"put": 1, "get": 1, "stream": 1, "delete": 0, "list": 0}
    assert storage_metrics.ERRORS.value(("put", "failed")) == failed + 1
    assert storage_metrics.ERRORS.value(("get", "failed")) == unread


async def test_whoever_stops_reading_a_blob_closes_it(tmp_path: Path) -> None:
    closed = False

    async def parts() -> AsyncIterator[bytes]:
        nonlocal closed
        try:
            yield b"1"
            yield b"2"
        finally:
            closed = True

    reading = storage_metrics.timed_parts("stream", parts())
    assert await anext(reading) == b"1"
    await reading.aclose()
    assert closed


# The queue ------------------------------------------------------------------------------------------


async def waiting(pillarbox: World, destination: str, items: int, *, since: timedelta) -> None:
    """So many items for a destination that were first tried so long ago."""
    team = await pillarbox.team(destination)
    await team.db.run(
        "INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, released, created_at,"
        " first_attempt_at) SELECT $1, gen_random_uuid(), 0, $2, $4::timestamptz + interval '1 hour', true,"
        " $4, $4 FROM generate_series(1, $3)",
        destination,
        items,
        pillarbox.clock.now() - since,
    )


async def test_the_destinations_that_wait_longest_have_names_and_the_others_are_one(pillarbox: World) -> None:
    """So labels are few, whatever is sent to."""
    for number in range(SHOWN + 3):
        await waiting(pillarbox, f"d{number:02}.example", 2, since=timedelta(hours=30 - number))
    await waiting(pillarbox, "new.example", 5, since=LONG / 2)
    counts = DestinationCounts(pillarbox.pool, pillarbox.clock)
    await counts.count()
    assert sorted(counts.items) == [(OTHERS,), *[(f"d{number:02}.example",) for number in range(SHOWN)]]
    assert counts.items[(OTHERS,)] == 6
    assert counts.oldest[("d00.example",)] == 30 * 3600
    assert counts.oldest[(OTHERS,)] == 20 * 3600


async def test_what_ought_not_to_have_left_is_not_counted(pillarbox: World) -> None:
    """A scheduled email is not late, and what the operator has to look at is another metric."""
    team = await pillarbox.team()
    await team.domain()
    await team.send(to=["ada@later.example"], scheduled_at="in 3 days")
    await waiting(pillarbox, "quarantined.example", 1, since=timedelta(hours=1))
    await pillarbox.pool.execute(
        "UPDATE deliveries SET due_at = $1 WHERE destination = 'quarantined.example'", QUARANTINED
    )
    await team.send(to=["ada@due.example"])
    clock_of(pillarbox).advance(24 * 3600)
    counts = DestinationCounts(pillarbox.pool, pillarbox.clock)
    await counts.count()
    assert counts.items == {("due.example",): 1}


async def test_a_long_queue_is_sampled_for_destinations(pillarbox: World) -> None:
    await waiting(pillarbox, "quay.example", 2000, since=timedelta(hours=1))
    counts = DestinationCounts(pillarbox.pool, pillarbox.clock, limit=100)
    await counts.count()
    assert counts.items == {("quay.example",): 2000}


async def test_a_smarthost_that_refuses_us_is_shown_until_mail_gets_through(
    database_url: str, tmp_path: Path
) -> None:
    async with Sink(users={"harbor": "right"}) as sink:
        route = f"relay:smtp://harbor:wrong@127.0.0.1:{sink.port}"
        async with manual_world(database_url, tmp_path, route=route) as pillarbox:
            engine = pillarbox.app.need(Engine)
            assert engine is not None
            team = await pillarbox.team()
            await team.domain()
            assert not engine.is_refused
            await team.send()
            await pillarbox.turn()
            assert engine.is_refused
            clock_of(pillarbox).advance(HOLDS[0] + 1)
            await pillarbox.turn()
            assert engine.is_refused
            sink._users = {"harbor": "wrong"}
            clock_of(pillarbox).advance(HOLDS[1] + 1)
            await pillarbox.turn()
            assert len(sink.received) == 1
            assert not engine.is_refused


async def test_a_process_that_asks_the_smarthost_no_more_forgets_that_it_refused(
    database_url: str, tmp_path: Path
) -> None:
    """Another process may have sent the mail that waited."""
    async with Sink(users={}) as sink:
        route = f"relay:smtp://harbor:wrong@127.0.0.1:{sink.port}"
        async with manual_world(database_url, tmp_path, route=route) as pillarbox:
            engine = pillarbox.app.need(Engine)
            assert engine is not None
            team = await pillarbox.team()
            await team.domain()
            await team.send()
            await pillarbox.turn()
            await pillarbox.pool.execute("DELETE FROM deliveries")
            clock_of(pillarbox).advance(HOLDS[0] + REFUSED_MARGIN - 1)
            assert engine.is_refused
            clock_of(pillarbox).advance(2)
            assert not engine.is_refused
