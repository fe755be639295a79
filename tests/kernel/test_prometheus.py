"""What Prometheus is told (OPS-06): the right numbers, nothing personal, at next to no cost."""

from __future__ import annotations

import asyncio
import itertools
import re
import threading
import time
import timeit
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from kit.client import http_server
from kit.manual_world import clock_of, manual_world, relayed_world
from kit.smtp_sink import Sink
from kit.world import Team, World
from pillarbox.delivery import prometheus as delivery_figures
from pillarbox.delivery.items import QUARANTINED, UNTIL_FETCHED
from pillarbox.delivery.lease_expiry import CONFIRM_SECONDS
from pillarbox.delivery.queries import ClaimShare
from pillarbox.delivery.queue import pausing_queries
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.delivery.queue.pausing_queries import PauseScope
from pillarbox.delivery.queue.queue_metrics import COUNTING
from pillarbox.emails import prometheus as accept_figures
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.http.pipeline import REQUESTS
from pillarbox.kernel.observability.metrics import SUFFIX, Counter, Gauge, Histogram, MetricsFile, Numbers
from pillarbox.kernel.observability.prometheus import MetricsFiles
from pillarbox.kernel.postgres import bounded_pool, group_commit
from pillarbox.kernel.storage.blobs import BlobFailed, BlobStore, FolderBackend
from pillarbox.kernel.work.queue_counts import QueueCounts

names = (f"pillarbox_test_{number}" for number in itertools.count())


def told(folder: Path) -> str:
    registry = CollectorRegistry()
    registry.register(MetricsFiles(folder))
    return generate_latest(registry).decode()


def written(folder: Path, pid: int, *numbers: Numbers) -> None:
    (folder / f"{pid}{SUFFIX}").write_bytes(msgspec.json.encode(list(numbers)))


def requests(count: int) -> Numbers:
    return Numbers(
        name="asked",
        kind="counter",
        meaning="Asked.",
        labels=("route",),
        bounds=(),
        values=[(("GET /",), [count])],
    )


def test_the_numbers_of_all_processes_are_added_up(tmp_path: Path) -> None:
    seconds = Numbers(
        name="took",
        kind="histogram",
        meaning="Took.",
        labels=(),
        bounds=(0.5, 1.0),
        values=[((), [3, 2, 1, 4.5])],
    )
    written(tmp_path, 1, requests(2), seconds)
    written(tmp_path, 2, requests(3), seconds)
    page = told(tmp_path).splitlines()
    assert 'asked_total{route="GET /"} 5.0' in page
    assert 'took_bucket{le="0.5"} 6.0' in page
    assert 'took_bucket{le="1.0"} 10.0' in page
    assert 'took_bucket{le="+Inf"} 12.0' in page
    assert "took_count 12.0" in page
    assert "took_sum 9.0" in page


def test_a_dead_process_keeps_its_counts_and_loses_its_gauges_and_its_file(tmp_path: Path) -> None:
    gauge = Numbers(name="held", kind="gauge", meaning="Held.", labels=(), bounds=(), values=[((), [7])])
    written(tmp_path, 1, requests(2), gauge)
    written(tmp_path, 2, requests(3), gauge)
    files = MetricsFiles(tmp_path)
    files.forget(1)
    files.forget(1)
    found = {(sample.name): sample.value for metric in files.collect() for sample in metric.samples}
    assert found == {"asked_total": 5, "held": 7}
    assert [path.name for path in tmp_path.iterdir()] == [f"2{SUFFIX}"]


def test_a_metrics_file_that_is_half_written_is_left_out(tmp_path: Path) -> None:
    written(tmp_path, 1, requests(2))
    (tmp_path / f"2{SUFFIX}").write_bytes(b'[["asked"')
    assert 'asked_total{route="GET /"} 2.0' in told(tmp_path)


def test_what_a_process_counts_is_in_its_metrics_file(tmp_path: Path) -> None:
    counter = Counter(next(names), "A counter.", ("kind",))
    gauge = Gauge(next(names), "A gauge.")
    histogram = Histogram(next(names), "A histogram.", (1, 2))
    counter.add(2, ("a",))
    counter.add(1, ("a",))
    gauge.read = lambda: {(): 4}
    for value in (0.5, 1, 1.5, 9):
        histogram.observe(value)
    MetricsFile(tmp_path, SystemClock()).write()
    page = told(tmp_path)
    assert re.search(r'pillarbox_test_\d+_total\{kind="a"\} 3\.0\n', page)
    assert re.search(r"pillarbox_test_\d+ 4\.0\n", page)
    assert re.search(r'pillarbox_test_\d+_bucket\{le="1\.0"\} 2\.0\n', page)
    assert (counter.value(("a",)), histogram.count()) == (3, 4)


def test_two_metrics_cannot_have_one_name() -> None:
    name = next(names)
    Counter(name, "One.")
    with pytest.raises(ValueError, match=name):
        Counter(name, "Two.")


def test_counting_an_email_costs_a_few_microseconds() -> None:
    """A request, its accept, its outcome and its share of two commits, each of one email at worst: 3 µs on a
    quiet machine, where accepting it takes a hundred times as much."""
    seconds = Histogram(next(names), "Requests.", REQUESTS._bounds, ("route", "status"))
    counters = [Counter(next(names), "Counted.") for _ in range(2)]
    outcome = Counter(next(names), "Outcomes.", ("outcome",))
    delivered = ("delivered",)

    def one_email() -> None:
        seconds.observe(0.004, ("POST /emails", "2xx"))
        for counter in counters:
            counter.add(1)
        outcome.add(1, delivered)

    best = min(timeit.repeat(one_email, timer=time.thread_time, number=5000, repeat=20)) / 5000
    assert best < 9e-6


async def test_requests_are_counted_by_the_pattern_of_their_route(database_url: str) -> None:
    """Never by path: ids and what a scanner tries would make a label each."""
    async with http_server(database_url) as here:
        team = await here.team()
        before = {key: REQUESTS.count(key) for key in WATCHED}
        async with here.client(team.token) as client:
            await client.get("/api-keys")
            await client.delete(f"/api-keys/{UUID(int=5)}")
            await client.get("/wp-admin/../../etc/passwd")
            await client.put("/api-keys")
        assert {key: REQUESTS.count(key) - before[key] for key in WATCHED} == {
            ("GET /api-keys", "2xx"): 1,
            ("DELETE /api-keys/{api_key_id}", "4xx"): 1,
            ("none", "4xx"): 2,
        }


WATCHED = (("GET /api-keys", "2xx"), ("DELETE /api-keys/{api_key_id}", "4xx"), ("none", "4xx"))


def delivery_counts() -> dict[str, float]:
    outcomes = {kind: delivery_figures.OUTCOMES.value((kind,)) for kind in OUTCOMES}
    return {
        **outcomes,
        "emails": accept_figures.EMAILS.value(),
        "recipients": accept_figures.RECIPIENTS.value(),
        "accepts": group_commit.COMMIT_SECONDS.count(("accept",)),
        "uncertain": delivery_figures.UNCERTAIN.value(),
        "recovered": delivery_figures.LEASES_RECOVERED.value(),
    }


OUTCOMES = ("delivered", "bounced", "delivery_delayed", "failed", "suppressed")


async def prepared(pillarbox: World) -> Team:
    team = await pillarbox.team()
    await team.domain()
    return team


async def test_mail_is_counted_on_its_way(relayed: tuple[World, Sink]) -> None:
    pillarbox, sink = relayed
    sink.script("RCPT", "550 5.7.1 no", "451 4.3.0 later", "250 2.1.5 ok")
    team = await prepared(pillarbox)
    before = delivery_counts()
    for name in ("bounced", "delayed", "delivered"):
        await team.send(to=[f"{name}@quay.example"])
        await pillarbox.turn()
    await team.send(to=["a@quay.example", "b@pier.example"])
    clock_of(pillarbox).advance(0.001)
    claims = pillarbox.app.need(ItemClaims)
    for pair in await claims.due():
        await claims.claim([ClaimShare(pair, 10)])
    clock_of(pillarbox).advance(31)
    await pillarbox.turn()
    clock_of(pillarbox).advance(CONFIRM_SECONDS)
    await pillarbox.turn()
    after = delivery_counts()
    assert {name: after[name] - before[name] for name in before} == {
        "delivered": 3,
        "bounced": 1,
        "delivery_delayed": 1,
        "failed": 0,
        "suppressed": 0,
        "emails": 4,
        "recipients": 5,
        "accepts": 4,
        "uncertain": 2,
        "recovered": 2,
    }


async def test_metrics_hold_nothing_personal(database_url: str, tmp_path: Path) -> None:
    """No address, no team, no key, no id."""
    async with relayed_world(database_url, tmp_path) as (pillarbox, _):
        team = await prepared(pillarbox)
        email = await team.send(to=["ada.lovelace@quay.example"], subject="Berth 99")
        await pillarbox.turn()
        await team.email(email)
        await QueueCounts(pillarbox.pool, pillarbox.clock, COUNTING).count()
        app = pillarbox.app
        bounded_pool.watch_pools({"requests": app.kit.pools.requests, "engine": app.kit.pools.engine})
        folder = tmp_path / "metrics"
        folder.mkdir()
        MetricsFile(folder, pillarbox.clock).write()
        page = told(folder)
        assert 'route="GET /emails/{email_id}"' in page
        assert 'pillarbox_pool_connections{pool="engine",state="most"}' in page
        for secret in ("lovelace", "quay", "harbor", "Harbor", "Berth", email, str(team.id), team.token):
            assert secret not in page


async def filled(pillarbox: World, rows: int) -> Team:
    """A team with that many due items, made by the database."""
    team = await pillarbox.team()
    await team.db.run(
        "INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, released, created_at) "
        "SELECT $1, gen_random_uuid(), 0, 'd' || n % 7 || '.example', $3::timestamptz, true, $3 "
        "FROM generate_series(1, $2) AS n",
        rows,
        pillarbox.clock.now(),
    )
    return team


async def test_every_item_of_the_queue_is_in_one_state(pillarbox: World) -> None:
    team = await filled(pillarbox, 70)
    now = pillarbox.clock.now()
    changes = {
        "d1.example": ("due_at = $3", UNTIL_FETCHED),
        "d2.example": ("due_at = $3", QUARANTINED),
        "d3.example": ("due_at = $3::timestamptz + interval '1 hour'", now),
        "d4.example": ("owner = gen_random_uuid(), leased_until = $3", now),
    }
    for destination, (change, value) in changes.items():
        await team.db.run(
            f"UPDATE deliveries SET {change} WHERE team_id = $1 AND destination = $2", destination, value
        )
    await pausing_queries.pause(pillarbox.pool, PauseScope(team.id, "d5.example"), None, now)
    clock_of(pillarbox).advance(90)
    counts = QueueCounts(pillarbox.pool, pillarbox.clock, COUNTING)
    await counts.count()
    assert counts.items == {
        "due": 20,
        "waiting": 10,
        "leased": 10,
        "held": 10,
        "paused": 10,
        "quarantined": 10,
    }
    assert counts.lag == 90
    assert set(counts.oldest.values()) == {90}


async def test_a_long_queue_is_sampled(pillarbox: World) -> None:
    """The cost has a bound whatever waits; the figures are near enough."""
    await filled(pillarbox, 20_000)
    await pillarbox.pool.execute("ANALYZE deliveries")
    few = replace(COUNTING, most=1000, pages=100)
    counts = QueueCounts(pillarbox.pool, pillarbox.clock, few)
    await counts.count()
    assert 15_000 < counts.items["due"] < 25_000
    assert counts.items["waiting"] == 0


async def test_health_says_when_blobs_cannot_be_stored(database_url: str, tmp_path: Path) -> None:
    """OPS-02, DUR-11: after a failed sync nothing that this process stores can be promised to last."""

    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    async with manual_world(database_url, tmp_path) as pillarbox:
        client = pillarbox.client(None)
        assert (await client.get("/health")).status_code == 200
        store = pillarbox.app.need(BlobStore)
        store._backend = FolderBackend(tmp_path / "broken", sync=broken)
        with pytest.raises(BlobFailed):
            await store.put("attachments/x", b"x")
        answer = await client.get("/health")
        assert (answer.status_code, answer.json()["name"]) == (503, "service_unavailable")
        assert answer.headers["retry-after"]


async def test_a_slow_disk_does_not_hold_up_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename waits for the journal of the disk."""
    begun, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(draft: Path, path: Path) -> None:
        begun.set()
        goes_on.wait(10)
        ended.set()

    monkeypatch.setattr(Path, "replace", slow)
    keeping = asyncio.create_task(MetricsFile(tmp_path, SystemClock()).keep())
    try:
        while not begun.is_set():
            await asyncio.sleep(0.001)
        assert not ended.is_set()
    finally:
        goes_on.set()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
