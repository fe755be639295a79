"""What automations do: from an event to its first step, steps a second, timers that are due by the thousand
beside `POST /emails`, and what waiting runs cost in memory.

Waiting runs are written to the database as the program would write them; all else goes through the API.
"""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.kit import load, tools
from bench.kit.beside import report_ratio
from bench.kit.processes import memory_mb, tree
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import KEY, Server, serving

ARRAY = 100
SINGLES = 200
STEPS_RUNS = 10_000
WAITING = 100_000
DUE = 10_000
DUE_SECONDS = 60
MANY = 1_000_000

STEPS = "SELECT count(*) FROM automation_steps WHERE status IN ('completed', 'skipped')"
LEFT = """
    SELECT (SELECT count(*) FROM events) + count(*)
      FROM automation_work
     WHERE due_at < now() + $1::text::interval
"""
FIRST = """
    SELECT percentile_cont($1::text::float) WITHIN GROUP (ORDER BY extract(epoch FROM started_at)
                                                   - (payload ->> 'sent')::float)
      FROM automation_runs
     WHERE event_name = 'one'
"""
LATE = """
    SELECT max(extract(epoch FROM s.completed_at - (r.payload ->> 'due')::timestamptz))
      FROM automation_runs r
      JOIN automation_steps s ON s.team_id = r.team_id AND s.run_id = r.id AND s.position = 1
     WHERE r.payload ->> 'due' IS NOT NULL AND s.status = 'completed'
"""
TIMERS = "SELECT count(*) FROM automation_runs WHERE payload ->> 'due' IS NOT NULL AND status = 'running'"

# Contacts are not there: nothing of these steps asks for them. `$4` of them are due within `$5` seconds.
INSERT = """
    WITH new AS MATERIALIZED (
        SELECT a.team_id, a.id AS automation_id, gen_random_uuid() AS id, n,
               now() + CASE WHEN n <= $3::text::int THEN n * $4::text::interval / $3::text::int
                            ELSE interval '29 days' END AS due
          FROM automations a, generate_series(1, $2::text::int) AS n
         WHERE a.id = $1::text::uuid
    ), runs AS (
        INSERT INTO automation_runs (team_id, id, automation_id, version, epoch, event_id, event_name,
                                     trigger_key, contact_id, status, payload, created_at, started_at)
        SELECT team_id, id, automation_id, 1, 0, id, 'later', 'start', id, 'running',
               CASE WHEN n <= $3::text::int THEN json_build_object('due', due) ELSE '{}' END, now(), now()
          FROM new
    ), steps AS (
        INSERT INTO automation_steps (team_id, run_id, position, status, started_at, completed_at)
        SELECT team_id, id, p, CASE p WHEN 0 THEN 'completed' ELSE 'waiting' END, now(),
               CASE p WHEN 0 THEN now() END
          FROM new, generate_series(0, 1) AS p
    )
    INSERT INTO automation_work (team_id, run_id, position, contact_id, due_at, waiting)
    SELECT team_id, id, 1, id, due, true FROM new
"""


def measure(report: Report) -> None:
    try:
        tools.need("wrk")
    except tools.Missing as missing:
        report.skip("everything", str(missing))
        return
    nowhere = f"relay:smtp://127.0.0.1:{tools.free_port()}"
    with serving(report, report.folder / "automations", route=nowhere) as server:
        server.trust()
        first_steps(report, server)
        many_steps(report, server)
        timers(report, server)
        waiting(report, server)


def first_steps(report: Report, server: Server) -> None:
    """Single events, with pauses: how long until the first step of their runs."""
    made(server, "one", [step("end", "condition", type="rule", field="event.x", operator="exists")])
    connection = server.connection()
    for number in range(20 if report.short else SINGLES):
        body = event("one", number, sent=time.time())
        connection.request("POST", "/events/send", json.dumps(body), head())
        answer = connection.getresponse()
        answer.read()
        if answer.status != 202:
            report.fault(f"POST /events/send: {answer.status}")
        time.sleep(0.05)
    connection.close()
    settled(server, "1 hour")
    p50 = server.number(FIRST, "0.5")
    note = f"p99 {server.number(FIRST, '0.99'):.2f} s"
    report.result("from an event to its first step, p50", p50, "s", at_most(1), note)


def many_steps(report: Report, server: Server) -> None:
    """A burst of events; each run has a trigger, a condition, a change of its contact and a delay."""
    made(
        server,
        "burst",
        [
            step("known", "condition", type="rule", field="contact.email", operator="exists"),
            step("name", "contact_update", first_name={"var": "event.first_name"}),
            step("pause", "delay", duration="1 second"),
            step("end", "condition", type="rule", field="event.first_name", operator="exists"),
        ],
        met=("known",),
    )
    runs, before = 1_000 if report.short else STEPS_RUNS, server.number(STEPS)
    began = time.monotonic()
    connection = server.connection()
    for first in range(0, runs, ARRAY):
        events = [event("burst", number, first_name="Ada") for number in range(first, first + ARRAY)]
        connection.request("POST", "/events/send", json.dumps(events), head())
        connection.getresponse().read()
    connection.close()
    settled(server, "1 hour")
    taken = time.monotonic() - began
    steps = server.number(STEPS) - before
    note = f"{steps:.0f} steps of {runs} runs in {taken:.1f} s, with their events and new contacts"
    report.result("steps, a fifth of them changes of contacts", steps / taken, "steps/s", at_least(500), note)


def timers(report: Report, server: Server) -> None:
    """Delays that are over within a minute, among many that are not, beside mail."""
    automation = made(server, "later", [step("pause", "delay", duration="30 days")])
    waiting, due = (5_000, 500) if report.short else (WAITING, DUE)
    seconds = 10 if report.short else DUE_SECONDS
    mails = load.single_mails(report.folder)
    insert(server, automation, waiting, 0, 1)
    for table in ("automation_runs", "automation_steps", "automation_work"):
        server.sql(f"VACUUM (ANALYZE) {table}")
    server.reuse_wal()
    accepting(server, mails, 2)
    alone = accepting(server, mails, seconds / 2)
    insert(server, automation, due, due, seconds)
    beside = accepting(server, mails, seconds)
    tools.wait_for(lambda: not server.number(TIMERS), "the timers", 300)
    report.result(f"{due:,} delays over in {seconds} s, the latest", server.number(LATE), "s", at_most(30))
    report_ratio(report, f"{due:,} delays that end", alone, [beside])


def insert(server: Server, automation: str, waiting: int, due: int, seconds: float) -> None:
    """So many runs that wait, some of them for delays that end within the next seconds."""
    server.sql(INSERT, automation, str(waiting), str(due), f"{seconds} seconds")


def accepting(server: Server, mails: Path, seconds: float) -> load.Answered:
    """Mail at some 180 requests a second."""
    return load.wrk(server, mails, connections=4, seconds=seconds, pause=20)


def waiting(report: Report, server: Server) -> None:
    """The largest process before and after many more runs wait."""
    automation = made(server, "last", [step("pause", "delay", duration="30 days")])
    pids = tree(server.process.pid).workers
    before = max(memory_mb(pid) for pid in pids)
    count = 20_000 if report.short else MANY
    for _ in range(0, count, 20_000):
        insert(server, automation, 20_000, 0, 1)
    time.sleep(3 if report.short else 30)
    after = max(memory_mb(pid) for pid in pids)
    report.result(
        f"{count:,} more runs that wait, the largest process",
        after / before,
        "×",
        at_most(1.1),
        f"{after:.0f} MB",
    )


def settled(server: Server, within: str) -> None:
    tools.wait_for(lambda: not server.number(LEFT, within), "the runs", 300)


def made(server: Server, name: str, steps: list[dict[str, Any]], met: tuple[str, ...] = ()) -> str:
    """An automation that is enabled, one step after the other; its id."""
    keys = ["start", *(one["key"] for one in steps)]
    body = {
        "name": name,
        "status": "enabled",
        "steps": [step("start", "trigger", event_name=name), *steps],
        "connections": [
            {"from": source, "to": target, "type": "condition_met" if source in met else "default"}
            for source, target in pairwise(keys)
        ],
    }
    connection = server.connection()
    connection.request("POST", "/automations", json.dumps(body), head())
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    if answer.status != 201:
        raise RuntimeError(text)
    return str(json.loads(text)["id"])


def step(key: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"key": key, "type": kind, "config": config}


def event(name: str, number: int, **payload: Any) -> dict[str, Any]:
    return {"event": name, "email": f"reader.{number}@inbox.example", "payload": payload}


def head() -> dict[str, str]:
    return {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}


if __name__ == "__main__":
    ended("automations", measure, __doc__)
