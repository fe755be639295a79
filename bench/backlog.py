"""A million waiting items: the start, the claim, and what another team's single mail feels of it.

The items are due, of one team, spread over a thousand destinations, and their mails are signed like any
other. Claims are first made directly, statement by statement, with nothing else running; then the server
starts with all roles and works on them while the other team sends.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from uuid import UUID, uuid4

import asyncpg

from bench.kit import load, tools
from bench.kit.fill import fill
from bench.kit.processes import Meter, shares
from bench.kit.results import Report, at_most, ended
from bench.kit.server import DOMAIN, Server, serving
from bench.kit.sinks import SmtpSink, smtp_sink
from pillarbox.delivery import queries
from pillarbox.delivery.lease_expiry import LEASE
from pillarbox.delivery.queries import ClaimShare, Pair
from pillarbox.delivery.queue.claims import BATCH, PAIRS_PER_CLAIM, START
from pillarbox.kernel.postgres.database import BY_KEY

WAITING = 1_000_000
WAITING_SHORT = 20_000
DESTINATIONS = 1000
HOURS = 1
OTHER_SECONDS = 60.0
PAUSE = 1.0


def measure(report: Report) -> None:
    waiting = WAITING_SHORT if report.short else WAITING
    data = report.folder / "data"
    try:
        tools.need("smtp-sink")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    with smtp_sink(report.folder) as sink:
        route = f"relay:smtp://127.0.0.1:{sink.port}"
        with serving(report, data, route=route, roles="api") as server:
            other = prepare(server, waiting)
            asyncio.run(claims(report, server, 60 if report.short else 400))
        with serving(report, data, route=route) as server:
            report.result(f"start with {waiting:,} waiting items", server.ready_after, "s", at_most(10))
            beside(report, server, sink, other)


def prepare(server: Server, waiting: int) -> str:
    """One team with the items, another one that may send; returns the other's key."""
    server.trust()
    team = str(server.sql("SELECT id FROM teams")[0][0])
    _, key = server.make_team("other")
    server.trust(f"other.{DOMAIN}", "other")
    since = datetime.now(UTC) - timedelta(hours=HOURS)
    gap = HOURS * 3600 / (waiting + 1)
    asyncio.run(fill(server, team, waiting, since=since, gap=gap, destinations=DESTINATIONS, waiting=True))
    for table in ("emails", "contents", "recipients", "timeline", "deliveries"):
        server.sql(f"VACUUM (ANALYZE) {table}")
    return key


async def claims(report: Report, server: Server, repetitions: int) -> None:
    """Read what is due and claim it as the engine does, again and again, each claim committed; then give
    all back."""
    owner = uuid4()
    looks: list[float] = []
    taken: list[float] = []
    items = 0
    conn = await server.connect()
    after = START
    try:
        for name, value in BY_KEY.items():
            await conn.execute(f"SET {name} = {value}")
        while len(taken) < repetitions:
            began = time.perf_counter()
            found = await queries.pairs(conn, datetime.now(UTC), after, PAIRS_PER_CLAIM)
            looks.append((time.perf_counter() - began) * 1000)
            full = len(found) == PAIRS_PER_CLAIM
            after = (found[-1].team_id, found[-1].destination) if full else START
            for wanted in alternating(found)[: repetitions - len(taken)]:
                now = datetime.now(UTC)
                began = time.perf_counter()
                async with conn.transaction():
                    items += len(await queries.claim(conn, wanted, owner, now + LEASE, now))
                taken.append((time.perf_counter() - began) * 1000)
        report.result(
            f"claim of up to {BATCH} items with its commit, p99",
            load.percentile(taken, 99),
            "ms",
            at_most(20),
            note=f"p50 {load.percentile(taken, 50):.1f} ms, {items:,} items in {len(taken)} claims",
        )
        report.result(
            f"look for {PAIRS_PER_CLAIM} teams and destinations, p99",
            load.percentile(looks, 99),
            "ms",
            note=f"p50 {load.percentile(looks, 50):.1f} ms",
        )
        await explain(report, conn, owner)
        await conn.execute(
            "UPDATE deliveries SET owner = NULL, leased_until = NULL, attempt = 0, first_attempt_at = NULL"
            " WHERE owner = $1",
            owner,
        )
    finally:
        await conn.close()


def alternating(pairs: Sequence[Pair]) -> list[list[ClaimShare]]:
    """Claims of both kinds in turn: all of one destination, and one item of each of many."""
    alone = [[ClaimShare(pair, BATCH)] for pair in pairs[:10]]
    many = [[ClaimShare(pair, 1) for pair in pairs[at : at + BATCH]] for at in range(0, len(pairs), BATCH)]
    return [claim for both in zip(alone, many, strict=False) for claim in both]


async def explain(report: Report, conn: asyncpg.Connection, owner: UUID) -> None:
    """What PostgreSQL itself says of the two statements."""
    now = datetime.now(UTC)
    pair = await conn.fetchrow("SELECT team_id, destination FROM deliveries WHERE owner IS NULL LIMIT 1")
    if pair is None:
        raise RuntimeError("nothing waits any more")
    plans = {
        "look": (queries.DUE_PAIRS, (now, *START, PAIRS_PER_CLAIM)),
        "claim": (queries.CLAIM, ([pair[0]], [pair[1]], [BATCH], owner, now + LEASE, now)),
    }
    for name, (statement, arguments) in plans.items():
        await conn.execute("BEGIN")
        raw = await conn.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", *arguments)
        await conn.execute("ROLLBACK")
        plan = json.loads(raw)[0]
        nodes = sorted(set(scans(plan["Plan"])))
        blocks = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
        report.note(f"{name}: {plan['Execution Time']:.1f} ms, {blocks:,} blocks, {', '.join(nodes)}")
        if any(node.startswith("Seq Scan on deliveries") for node in nodes):
            report.fault(f"{name} reads the whole queue")


def scans(plan: dict[str, object]) -> list[str]:
    """The tables and indexes that a plan reads, and how."""
    found = []
    if "Relation Name" in plan and "Scan" in str(plan["Node Type"]):
        found.append(f"{plan['Node Type']} on {plan.get('Index Name') or plan['Relation Name']}")
    children = plan.get("Plans", [])
    assert isinstance(children, list)
    for child in children:
        found += scans(child)
    return found


def beside(report: Report, server: Server, sink: SmtpSink, key: str) -> None:
    """Another team's mails, one at a time, while the backlog goes out."""
    mails = 5 if report.short else 20
    client = server.connection()
    meter = Meter(server.process.pid, sink=sink.pid)
    before, began = sink.messages, time.monotonic()
    taken = []
    for number in range(mails):
        taken.append(asyncio.run(one(server, client, key, number)))
        time.sleep(PAUSE)
    sent = sink.messages - before
    rate = sent / (time.monotonic() - began)
    used = meter.used()
    left = server.number("SELECT count(*) FROM deliveries")
    report.result(
        "another team's single mail, accepted → delivered, worst",
        max(taken),
        "s",
        at_most(5),
        note=f"of {mails}, median {load.percentile(taken, 50):.2f} s",
    )
    report.result("the backlog meanwhile", rate, "mails/s", note=f"{left:,.0f} items left")
    report.note(shares(used, sent))


async def one(server: Server, client: HTTPConnection, key: str, number: int) -> float:
    """Seconds from the request to the commit of its delivery."""
    mail = load.mail(number) | {"from": f"other@other.{DOMAIN}"}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    began = time.monotonic()
    client.request("POST", "/emails", json.dumps(mail), headers)
    response = client.getresponse()
    raw = response.read()
    if response.status != 200:
        raise RuntimeError(f"{response.status} {raw[:300]!r}")
    email = UUID(json.loads(raw)["id"])
    conn = await server.connect()
    try:
        while await conn.fetchval("SELECT 1 FROM deliveries WHERE email_id = $1", email):
            if time.monotonic() - began > OTHER_SECONDS:
                break
            await asyncio.sleep(0.02)
        return time.monotonic() - began
    finally:
        await conn.close()


if __name__ == "__main__":
    ended("backlog", measure, __doc__)
