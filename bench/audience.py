"""Contacts by conditions and by words, in a team with a million contacts and a thousand segments.

The first page and the count of conditions that many, few and no contacts fit, over the API; the search by a
part of a name or address; the first bytes of the screens; and the snapshot of a broadcast to a segment that
is defined by conditions. The contacts are written by SQL, their terms by the background job.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote
from uuid import UUID

from bench.contacts import grow
from bench.kit import load, tools
from bench.kit.results import Report, at_least, at_most, ended
from bench.kit.server import KEY, SENDER, Server, serving
from bench.pages import Reader, people

MANY = 1_000_000
MANY_SHORT = 50_000
SEGMENTS = 1000
TIMES = 40
TERMS_SECONDS = 1500
NOWHERE = "relay:smtp://127.0.0.1:9"

Condition = dict[str, Any]

MORE_SEGMENTS = """
    INSERT INTO segments (team_id, id, name, created_at)
    SELECT $1::uuid, gen_random_uuid(), 'More ' || n, now() FROM generate_series(1, $2::int) AS n
"""
ENGAGE = """
    INSERT INTO contact_engagement (team_id, contact_id, opened_at, clicked_at)
    SELECT team_id, id, now() - random() * interval '90 days',
           CASE WHEN random() < 0.2 THEN now() - random() * interval '90 days' END
      FROM contacts WHERE team_id = $1::uuid AND random() < 0.4
"""
TERMS = "SELECT count(*) FROM contact_terms"
# The job had begun before there was anything.
BEGIN_TERMS = "DELETE FROM contact_terms_progress"
RESOLVED = """
    SELECT resolved_at - queued_at AS snapshot, recipients FROM broadcasts WHERE resolved_at IS NOT NULL
"""


def rule(field: str, operator: str, value: object = None) -> Condition:
    """Return a condition about one field."""
    found = {"type": "rule", "field": field, "operator": operator}
    return found if value is None else {**found, "value": value}


def conditions(segment: str) -> dict[str, Condition]:
    """Return the conditions that are tried, by who fits them."""
    plan, city = (
        rule("contact.properties.key_1", "eq", "pro"),
        rule("contact.properties.key_2", "eq", "city 7"),
    )
    opened = rule("engagement.opened", "within_days", 30)
    member = rule(f"segments.{segment}", "eq", True)
    return {
        "all contacts": plan,
        "one in 300": city,
        "one, by a property": rule("contact.properties.key_3", "eq", "no. 77"),
        "nobody": rule("contact.properties.key_1", "eq", "none"),
        "one in seven, who opened": opened,
        "one in ten, of a segment": member,
        "four of several tables": {
            "type": "and",
            "rules": [plan, opened, member, {"type": "not", "rule": city}],
        },
    }


def measure(report: Report) -> None:
    many = MANY_SHORT if report.short else MANY
    with serving(report, report.folder / "data", route=NOWHERE, roles="api,jobs") as server:
        server.trust()
        team = UUID(server.sql("SELECT team_id::text FROM api_keys LIMIT 1")[0][0])
        grow(server, str(team), many)
        server.sql(MORE_SEGMENTS, str(team), SEGMENTS)
        server.sql(ENGAGE, str(team))
        for table in ("contact_engagement", "segments"):
            server.sql(f"VACUUM (ANALYZE) {table}")
        segment = str(
            server.sql("SELECT segment_id FROM segment_members WHERE team_id = $1::uuid LIMIT 1", str(team))[
                0
            ][0]
        )
        by_conditions(report, server, conditions(segment))
        by_words(report, server, many)
        # One person may ask for so many pages within a minute.
        readers = [Reader(server, session) for session in asyncio.run(people(server, team, 3))]
        screens(report, readers[0])
        drafts(report, server, readers[1:], segment)
        for reader in readers:
            reader.close()
        snapshot(report, server)


def by_conditions(report: Report, server: Server, tried: dict[str, Condition]) -> None:
    for who, condition in tried.items():
        given = quote(json.dumps(condition))
        pages = timed(server, [f"/contacts?limit=20&conditions={given}"] * TIMES)
        report.result(f"first page, {who}, p99", load.percentile(pages, 99), "ms", at_most(300))
        counts = timed(server, [f"/contacts/count?conditions={given}"] * 5)
        report.result(f"count, {who}, median", load.percentile(counts, 50), "ms", at_most(1000))


def by_words(report: Report, server: Server, many: int) -> None:
    """Wait until the job has read all contacts, then search."""
    server.sql(BEGIN_TERMS)
    began = time.monotonic()
    while server.number(TERMS) < many:
        if time.monotonic() - began > TERMS_SECONDS:
            report.fault(f"terms of {server.number(TERMS):,.0f} contacts of {many:,}")
            return
        time.sleep(2)
    report.result("terms of new contacts", many / max(1.0, time.monotonic() - began), "contacts/s")
    for what, words in (
        ("a whole address", "person.77@inbox77.example"),
        ("the beginning of an address", "person.7777"),
        ("a name that one in 500 has", "First77"),
        ("nobody", "zzyzx"),
    ):
        took = timed(server, [f"/contacts?limit=20&search={quote(words)}"] * TIMES)
        report.result(f"search, {what}, p99", load.percentile(took, 99), "ms", at_most(300))


def screens(report: Report, reader: Reader) -> None:
    paths = [
        "/dashboard/contacts",
        "/dashboard/segments",
        "/dashboard/contacts?f1=contact.properties.key_2&o1=eq&v1=city+7",
    ]
    paths += ["/dashboard/topics", "/dashboard/broadcasts", "/dashboard/forms", "/dashboard/contacts/imports"]
    first_bytes(report, reader, {path.partition("&")[0]: path for path in paths})


def drafts(report: Report, server: Server, readers: Sequence[Reader], segment: str) -> None:
    """The steps of drafts to one contact in ten, by hand, and to all contacts, by conditions."""
    fitting = rule("contact.properties.key_1", "eq", "pro")
    everybody = call(server, "/segments", {"name": "Everybody", "conditions": fitting})["id"]
    body = {"from": SENDER, "subject": "s", "text": "t", "name": "n"}
    audiences = (("a tenth", segment), ("all by conditions", everybody))
    for reader, (who, segment_id) in zip(readers, audiences, strict=True):
        draft = call(server, "/broadcasts", {**body, "segment_id": segment_id})["id"]
        here = f"/dashboard/broadcasts/{draft}"
        counts = timed(server, [f"/broadcasts/{draft}/audience"] * 5)
        report.result(f"audience of a draft to {who}, median", load.percentile(counts, 50), "ms")
        steps = ("content", "audience", "pace", "review")
        first_bytes(report, reader, {f"draft to {who}, {step}": f"{here}?step={step}" for step in steps})


def first_bytes(report: Report, reader: Reader, paths: dict[str, str]) -> None:
    """Ask for screens one after the other; their names are those of the results."""
    for name, path in paths.items():
        took = []
        reader.ask(path)
        for _ in range(TIMES):
            status, first, _ = reader.ask(path)
            if status != 200:
                report.fault(f"{path}: {status}")
            took.append(first)
        report.result(f"first byte of {name}, p99", load.percentile(took, 99), "ms", at_most(150))


def snapshot(report: Report, server: Server) -> None:
    """A broadcast to all contacts with a plan that makes no copies yet."""
    condition = rule("contact.properties.key_1", "eq", "pro")
    segment = call(server, "/segments", {"name": "Pro", "conditions": condition})["id"]
    body = {"segment_id": segment, "from": SENDER, "subject": "s", "text": "t", "name": "n"}
    broadcast = call(server, "/broadcasts", body)["id"]
    call(server, f"/broadcasts/{broadcast}/send", {})
    row: list[Any] = []

    def is_resolved() -> bool:
        row[:] = server.sql(RESOLVED)
        return bool(row)

    tools.wait_for(is_resolved, "the snapshot", 300, pause=0.1)
    seconds = row[0]["snapshot"].total_seconds()
    rate = row[0]["recipients"] / seconds
    report.result("snapshot of a segment with conditions", rate, "contacts/s", at_least(100_000))


def timed(server: Server, paths: Sequence[str]) -> list[float]:
    """Milliseconds of each request, one after the other."""
    connection, took = server.connection(), []
    for path in paths:
        began = time.perf_counter()
        connection.request("GET", path, headers={"authorization": f"Bearer {KEY}"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        took.append((time.perf_counter() - began) * 1000)
    connection.close()
    return took


def call(server: Server, path: str, body: dict[str, Any]) -> dict[str, Any]:
    connection = server.connection()
    connection.request(
        "POST", path, json.dumps(body), {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    )
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{path}: {answer.status} {text[:200]!r}")
    return dict(json.loads(text))


if __name__ == "__main__":
    ended("audience", measure, __doc__)
