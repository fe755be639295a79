"""Imports of contacts beside the bare statements, what they cost those who send mail meanwhile, and their
memory.

The peer is one COPY of the same rows into a temporary table and one statement that puts them into the same
tables, with the ids made and the cells read before: nothing but the database. Both begin with empty tables.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from bench.kit import load, tools
from bench.kit.beside import report_ratio
from bench.kit.processes import children
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import KEY, Server, serving

ROWS = 1_000_000
ROWS_SHORT = 30_000
LARGE_BYTES = 200_000_000
LARGE_SHORT = 5_000_000
CONNECTIONS = 20
PAUSE_MS = 100
LIMIT_SECONDS = 1800.0

MAP = {
    "email": "E-mail",
    "first_name": "Given name",
    "last_name": "Surname",
    "properties": {
        "plan": {"column": "Plan", "type": "string"},
        "seats": {"column": "Seats", "type": "number"},
        "active": {"column": "Active", "type": "boolean"},
    },
}
HEADER = "E-mail,Given name,Surname,Plan,Seats,Active\n"

STAGE = """
    CREATE TEMPORARY TABLE peer (id uuid, address text, first_name text, last_name text, properties jsonb)
"""
PUT = """
    WITH written AS (
        INSERT INTO contacts AS c
               (team_id, id, address, first_name, last_name, unsubscribed, properties, created_at, updated_at)
        SELECT $1, id, address, first_name, last_name, false, properties, now(), now() FROM peer
        ON CONFLICT (team_id, address) DO UPDATE
           SET first_name = excluded.first_name, last_name = excluded.last_name,
               properties = c.properties || excluded.properties, updated_at = excluded.updated_at
        RETURNING id
    )
    INSERT INTO segment_members (team_id, segment_id, contact_id, added_at)
    SELECT $1, $2, id, now() FROM written
    ON CONFLICT DO NOTHING
"""
ADD_SEGMENT = "INSERT INTO segments (team_id, id, name, created_at) VALUES ($1, $2, 'All', now())"
OPEN = "SELECT count(*) FROM contact_imports WHERE status IN ('queued', 'in_progress')"
EMPTY = "TRUNCATE contacts, segment_members, contact_imports, contact_import_errors"
PEER_TEAM = UUID("0199a3c2-0000-7000-8000-000000000001")
SEGMENT = UUID("0199a3c2-0000-7000-8000-000000000002")


def measure(report: Report) -> None:
    rows = ROWS_SHORT if report.short else ROWS
    with serving(report, report.folder / "data") as server:
        server.trust()
        add_segment(server)
        file = report.folder / "people.csv"
        write(file, rows)
        bare = peer(report, server, rows)
        first = measured(report, server, file, rows, "import on empty tables")
        report.result("import ÷ bare COPY and upsert", first / bare, "", at_least(0.6))
        again = measured(report, server, file, rows, "the same file again")
        report.result("the same file again ÷ the first time", again / first, "", at_least(0.5))
        memory(report, server)
        latency(report, server, file)


def add_segment(server: Server) -> None:
    """The segment that imports put people into."""
    server.sql(ADD_SEGMENT, server.sql("SELECT id FROM teams")[0][0], SEGMENT)


def write(path: Path, rows: int, seed: int = 1) -> None:
    """A file of so many people."""
    chance = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        file.write(HEADER)
        for number in range(rows):
            file.write(
                f"{address(chance, number)},First{number % 1000},Last{number % 5000},plan {number % 7},"
                f"{number % 100},{'yes' if number % 2 else 'no'}\n"
            )


def address(chance: random.Random, number: int) -> str:
    return f"reader.{chance.getrandbits(40):010x}@inbox{number % 2000}.example"


def peer(report: Report, server: Server, rows: int) -> float:
    """Rows a second of the bare statements."""
    chance = random.Random(1)
    path = report.folder / "peer.copy"
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            values = {"1": f"plan {number % 7}", "2": number % 100, "3": bool(number % 2)}
            made = UUID(int=0x0199A3C2 << 96 | 7 << 76 | 2 << 62 | number)
            names = f"First{number % 1000}\tLast{number % 5000}"
            file.write(f"{made}\t{address(chance, number)}\t{names}\t{json.dumps(values)}\n")
    took = asyncio.run(_peer(server, path))
    report.result("bare COPY and one upsert", rows / took, "rows/s")
    return rows / took


async def _peer(server: Server, path: Path) -> float:
    conn = await server.connect()
    try:
        await conn.execute("CHECKPOINT")
        began = time.monotonic()
        async with conn.transaction():
            await conn.execute(STAGE)
            await conn.copy_to_table("peer", source=path)
            await conn.execute(PUT, PEER_TEAM, SEGMENT, timeout=LIMIT_SECONDS)
        took = time.monotonic() - began
        await conn.execute(EMPTY)
        await conn.execute("CHECKPOINT")
    finally:
        await conn.close()
    return took


def measured(report: Report, server: Server, file: Path, rows: int, name: str) -> float:
    """Rows a second of one import, from its answer to its end."""
    import_id = posted(server, file)
    began = time.monotonic()
    found = finished(server, import_id)
    took = time.monotonic() - began
    wanted = "created" if "again" not in name else "updated"
    if found["status"] != "completed" or found["counts"][wanted] < rows * 0.99:
        report.fault(f"{name}: {found}")
    limit = None if "again" in name or report.short else at_least(40_000)
    report.result(name, rows / took, "rows/s", limit, f"{took:.1f} s")
    return rows / took


def posted(server: Server, file: Path) -> str:
    """The id of an import that is accepted; curl streams the file."""
    done = subprocess.run(
        [
            tools.program("curl"),
            "-sS",
            "-H",
            f"Authorization: Bearer {KEY}",
            "-F",
            f"file=@{file}",
            "-F",
            f"column_map={json.dumps(MAP)}",
            "-F",
            f'segments=["{SEGMENT}"]',
            f"{server.url}/contacts/imports",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return str(json.loads(done.stdout)["id"])


def finished(server: Server, import_id: str) -> dict:  # type: ignore[type-arg]
    """The import when it has ended."""
    client = server.connection()
    until = time.monotonic() + LIMIT_SECONDS
    while True:
        client.request("GET", f"/contacts/imports/{import_id}", headers={"Authorization": f"Bearer {KEY}"})
        found = json.loads(client.getresponse().read())
        if found["status"] in ("completed", "failed") or time.monotonic() > until:
            client.close()
            return dict(found)
        time.sleep(0.05)


def memory(report: Report, server: Server) -> None:
    """All processes while a large file comes in and is imported."""
    file = report.folder / "large.csv"
    size = LARGE_SHORT if report.short else LARGE_BYTES
    with file.open("w", encoding="utf-8") as out:
        out.write(HEADER)
        number = 0
        while out.tell() < size:
            number += 1
            name = f"First{number} of the people of the harbor"
            cells = f"{name},Last{number % 5000},plan,{number % 100},no"
            out.write(f"large.{number}@inbox{number % 2000}.example,{cells}\n")
    time.sleep(2)
    idle = whole_memory(server.process.pid)
    with watched(server.process.pid) as peak:
        found = finished(server, posted(server, file))
    if found["status"] != "completed":
        report.fault(f"the large file: {found}")
    name = f"all processes while {size / 1e6:.0f} MB are imported, above idle, peak"
    report.result(name, peak[0] - idle, "MB", at_most(60), f"idle {idle:.0f} MB, {number:,} rows")


@contextmanager
def watched(pid: int) -> Iterator[list[float]]:
    """The highest memory of a process and all below it, looked at ten times a second."""
    peak, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            peak[0] = max(peak[0], whole_memory(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def whole_memory(pid: int) -> float:
    """MB of a process and all below it: each page once, without PostgreSQL's shared buffers."""
    return own_memory(pid) + sum(whole_memory(child) for child in children(pid))


def own_memory(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    found = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith("Pss")}
    return (found.get("Pss", 0) - found.get("Pss_Shmem", 0)) * 1024 / 1e6


def latency(report: Report, server: Server, file: Path) -> None:
    """POST /emails while a file of new people is imported."""
    try:
        tools.need("wrk")
    except tools.Missing as missing:
        report.skip("POST /emails meanwhile", str(missing))
        return
    seconds = 3 if report.short else 10
    server.reuse_wal()
    requests = load.single_mails(report.folder)
    alone = accepting(server, requests, seconds)
    server.sql(EMPTY)
    import_id = posted(server, file)
    waves = []
    while not waves or running(server):
        waves.append(accepting(server, requests, seconds))
        if report.short:
            break
    finished(server, import_id)
    report_ratio(report, "an import", alone, waves)


def accepting(server: Server, requests: Path, seconds: float) -> load.Answered:
    """Mail at some 200 requests a second."""
    return load.wrk(server, requests, connections=CONNECTIONS, seconds=seconds, pause=PAUSE_MS)


def running(server: Server) -> bool:
    return bool(
        server.number("SELECT count(*) FROM contact_imports WHERE status IN ('queued', 'in_progress')")
    )


if __name__ == "__main__":
    ended("imports", measure, __doc__)
