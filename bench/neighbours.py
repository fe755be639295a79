"""How fast one team's mail is accepted beside a flood of another team's reads: `POST /emails` one by one,
alone and beside 200 connections that ask for lists, for metrics, or for both.

The flood runs in a process of its own, without a pause and without a rate limit. So both teams, the flood and
the database share the processors, and the figure that counts is the ratio to the idle server of the same run.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Event

from bench.kit import load, tools
from bench.kit.results import Report, at_most, ended
from bench.kit.server import KEY, Server, serving

CONNECTIONS = 200
DOMAIN = "harbor.example"
SEEDED, SEEDED_SHORT = 200, 20
"""Batches of 100 emails that the flooding team has."""

SECONDS, SECONDS_SHORT = 20.0, 4.0
LISTS = "/emails?limit=100"
METRICS = "/emails/metrics?metrics=sent,delivered,bounced"
FLOODS = {"lists": [LISTS], "metrics": [METRICS], "lists and metrics": [LISTS, METRICS]}


def measure(report: Report) -> None:
    seconds = SECONDS_SHORT if report.short else SECONDS
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with serving(report, report.folder / "data", route=nowhere, roles="api") as server:
        server.trust()
        server.reuse_wal()
        team, key = server.make_team("harbor")
        server.trust(DOMAIN, team)
        seed(server, key, SEEDED_SHORT if report.short else SEEDED)
        accepted(server, min(seconds, 3.0))
        alone = accepted(server, seconds)
        report.result("POST /emails alone, p99", p99(alone), "ms", note=f"{len(alone)} mails")
        for name, paths in FLOODS.items():
            with flooding(server, key, paths) as answers:
                times = accepted(server, seconds)
            note = f"{p99(times):.0f} ms, {len(times)} mails; flood: {dict(answers)}"
            report.result(f"p99 beside {name} ÷ alone", p99(times) / p99(alone), "×", at_most(3), note)


def seed(server: Server, key: str, batches: int) -> None:
    """Give the flooding team emails to list and to count."""
    conn = server.connection()
    for number in range(batches):
        mails = [load.mail(number * 100 + at) | {"from": f"a@{DOMAIN}"} for at in range(100)]
        status, _ = asked(conn, "POST", "/emails/batch", key, mails)
        if status != 200:
            raise RuntimeError(f"a batch was answered {status}")


def accepted(server: Server, seconds: float) -> list[float]:
    """Milliseconds of each `POST /emails` of the other team, one by one over one connection."""
    conn, times, ends = server.connection(), list[float](), time.perf_counter() + seconds
    while (began := time.perf_counter()) < ends:
        status, _ = asked(conn, "POST", "/emails", KEY, load.mail(len(times)))
        times.append((time.perf_counter() - began) * 1000)
        if status != 200:
            raise RuntimeError(f"an email was answered {status}")
    return times


def asked(
    conn: http.client.HTTPConnection, method: str, path: str, key: str, body: object
) -> tuple[int, bytes]:
    conn.request(method, path, json.dumps(body), {"authorization": f"Bearer {key}"})
    answer = conn.getresponse()
    return answer.status, answer.read()


def p99(times: Sequence[float]) -> float:
    return sorted(times)[len(times) * 99 // 100]


@contextmanager
def flooding(server: Server, key: str, paths: Sequence[str]) -> Iterator[Counter[int]]:
    """Reads over many connections until the block ends; then their statuses are in what this gives."""
    context = multiprocessing.get_context("spawn")
    stop, done, answers = context.Event(), context.SimpleQueue(), Counter[int]()
    child = context.Process(target=flood, args=(server.host, server.port, key, list(paths), stop, done))
    child.start()
    time.sleep(2)
    try:
        yield answers
    finally:
        stop.set()
        answers.update(done.get())
        child.join()


def flood(host: str, port: int, key: str, paths: Sequence[str], stop: Event, done: object) -> None:
    """What the child does; puts the number of answers of each status into `done`."""
    answers: Counter[int] = Counter()

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        path = paths[number % len(paths)]
        request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
        while not stop.is_set():
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(lengths[0].split(b":")[1]))
            answers[int(head[9:12])] += 1
        writer.close()

    async def everything() -> None:
        await asyncio.gather(*[one(number) for number in range(CONNECTIONS)], return_exceptions=True)

    asyncio.run(everything())
    done.put(dict(answers))  # type: ignore[attr-defined]


if __name__ == "__main__":
    ended("neighbours", measure, __doc__)
