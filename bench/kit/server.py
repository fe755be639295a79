"""`pillarbox serve` on a folder of its own: started, asked, stopped by its pid, and its log read."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from bench.kit import tools
from bench.kit.results import Report

KEY = "re_benchmarkbenchmarkbenchmark000"
DOMAIN = "bench.example"
SENDER = f"Bench <news@{DOMAIN}>"
READY_SECONDS = 60.0
WAL_PIECE_MB = 32
COMPLAINTS = frozenset({"warning", "error", "critical"})


class Server:
    """A running Pillarbox. `ready_after` is the time from spawning it to its `ready` line, `python` the
    interpreter of its checkout."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        data: Path,
        log: Path,
        ready_after: float,
        python: str = sys.executable,
    ) -> None:
        self.process = process
        self.data = data
        self.log = log
        self.ready_after = ready_after
        self.python = python
        note = json.loads((data / "run" / "supervisor.json").read_text())
        self.database_url: str = note["database_url"]
        self.url: str = note["http"] or ""
        address = urlsplit(self.url)
        self.host = address.hostname or ""
        self.port = address.port or 0

    def command(self, *arguments: str) -> str:
        """What a `pillarbox` command on this data folder prints."""
        done = subprocess.run(
            [self.python, "-P", "-m", "pillarbox", *arguments, "--data", str(self.data)],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode:
            raise RuntimeError(f"pillarbox {' '.join(arguments)}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def trust(self, domain: str = DOMAIN, team: str | None = None) -> None:
        """Give the team a domain that it may send from, with an RSA-2048 key."""
        chosen = ["--team", team] if team else []
        self.command("domains", "trust", domain, "--create", *chosen)

    def make_team(self, name: str) -> tuple[str, str]:
        """One more team; returns its id and its key."""
        made = json.loads(self.command("teams", "create", name, "--email", f"{name}@localhost", "--json"))
        return made["id"], made["token"]

    def sql(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        """Ask the database by a connection of our own."""
        return asyncio.run(self._sql(statement, *arguments))

    async def _sql(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        conn = await self.connect()
        try:
            return list(await conn.fetch(statement, *arguments))
        finally:
            await conn.close()

    async def connect(self) -> asyncpg.Connection:
        """A connection of our own to the server's database."""
        return await asyncpg.connect(self.database_url, timeout=30)

    def number(self, statement: str, *arguments: object) -> float:
        """The one number that a statement answers."""
        return float(self.sql(statement, *arguments)[0][0])

    def reuse_wal(self) -> None:
        """Let the database's log have all the files that it keeps for reuse, as it has after its first day:
        making a new one holds up every commit for tens of milliseconds."""
        kept = self.number("SELECT setting FROM pg_settings WHERE name = 'min_wal_size'")
        for _ in range(round(kept / WAL_PIECE_MB)):
            self.sql(
                "SELECT pg_logical_emit_message(false, 'bench', repeat('x', $1::int))", WAL_PIECE_MB << 20
            )
        self.sql("CHECKPOINT")

    def connection(self, timeout: float = 120.0) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def complaints(self) -> Counter[str]:
        """Events of the server's log from `warning` on, counted."""
        found: Counter[str] = Counter()
        with self.log.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                entry = _entry(line)
                if entry.get("level") in COMPLAINTS:
                    found[f"{entry['level']} {entry.get('event')}"] += 1
        return found

    def excerpt(self, event: str) -> str:
        """The first log line of an event, cut to size."""
        with self.log.open(encoding="utf-8", errors="replace") as lines:
            return next((line.strip()[:600] for line in lines if f'"{event}"' in line), "")


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {"level": "error", "event": "not a log line"} if line.strip() else {}
    return entry if isinstance(entry, dict) else {}


@contextmanager
def serving(
    report: Report,
    data: Path,
    *,
    route: str = "capture",
    roles: str | None = None,
    processes: int | None = None,
    more: Sequence[str] = (),
    python: str = sys.executable,
) -> Iterator[Server]:
    """A server with the defaults except the rate limit, which is off; complaints of its log are reported."""
    log = data.with_name(f"{data.name}.{time.monotonic_ns()}.log")
    process, ready_after = start(
        data, log, route=route, roles=roles, processes=processes, more=more, python=python
    )
    server = Server(process, data, log, ready_after, python=python)
    try:
        yield server
    finally:
        died = process.poll()
        took = tools.end(process)
        if died is not None or process.returncode != 0:
            report.fault(f"pillarbox serve ended with status {process.returncode}")
        if took > 10:
            report.note(f"the stop took {took:.1f} s")
        for what, count in server.complaints().most_common(8):
            reported = report.note if what.startswith("warning") else report.fault
            reported(f"server log: {count} × {what}: {server.excerpt(what.partition(' ')[2])}")


def start(
    data: Path,
    log: Path,
    *,
    route: str = "capture",
    roles: str | None = None,
    processes: int | None = None,
    more: Sequence[str] = (),
    python: str = sys.executable,
) -> tuple[subprocess.Popen[bytes], float]:
    """Spawn `pillarbox serve` and wait for `ready`; returns it and the seconds until then."""
    command = [python, "-P", "-m", "pillarbox", "serve", "--data", str(data)]
    command += ["--http", "127.0.0.1:0", "--smtp", "off", "--submission", "off", "--log", "json"]
    command += ["--rate-limit", "0", "--initial-api-key", KEY, "--hostname", "mta.bench.example"]
    command += ["--route", route, *more]
    command += ["--roles", roles] if roles else []
    command += ["--processes", str(processes)] if processes else []
    began = time.monotonic()
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment()
        )
    try:
        _await_ready(process, began + READY_SECONDS)
    except BaseException:
        tools.end(process)
        print(log.read_text(errors="replace")[-2000:], file=sys.stderr)
        raise
    return process, time.monotonic() - began


def _await_ready(process: subprocess.Popen[bytes], deadline: float) -> None:
    assert process.stdout is not None
    output = b""
    while b"\nready" not in b"\n" + output:
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(process.stdout.fileno(), 4096) if readable else b""
        if not chunk:
            raise RuntimeError(f"pillarbox serve did not get ready: {output.decode(errors='replace')!r}")
        output += chunk


def environment() -> dict[str, str]:
    """Ours without settings and without module paths. Compiled modules are kept, as `script/server` keeps
    them: with this variable each process would compile the program first."""
    unwanted = ("PILLARBOX_", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    return {name: text for name, text in os.environ.items() if not name.startswith(unwanted)}
