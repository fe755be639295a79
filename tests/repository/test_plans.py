"""The engine's statements go from keys to rows (docs/decisions/0019 and docs/decisions/0026)."""

from __future__ import annotations

import re
from importlib import import_module

import asyncpg

from kit.statements import LEASE_TABLES
from pillarbox.kernel.postgres.database import BY_KEY

MODULES = (
    "delivery.queries",
    "delivery.smtp.known_domain_queries",
    "emails.queries",
    "emails.search.queries",
    "emails.work_queries",
    "inboxes.locking_queries",
    "inboxes.policy.queries",
    "inboxes.policy.refusals",
    "inboxes.threading.queries",
    "inboxes.trust.queries",
    "logs.queries",
    "receiving.store_queries",
    "timeline.queries",
    "usage.queries",
    "webhooks.dispatch.queries",
    "webhooks.event_queries",
    "webhooks.health_queries",
    "webhooks.queries",
)

WHOLE = {
    "delivery.queries.HAS_MAIL": "whether there is a row",
    "delivery.queries.IS_PAUSED": "as above",
    "delivery.queries.FREE_OWNED": "all that a dead process holds, by the index of what is held",
    "delivery.queries.OWNS": "whether a dead process holds anything, by the same index",
    "automation_work.holders": "who holds anything, by the index of what is held",
    "deliveries.holders": "as above",
    "jobs.holders": "as above",
    "webhook_deliveries.holders": "as above",
    "logs.queries.TEAMS": "each team in turn",
    "emails.search.queries.BLOCKS": "each team in turn, where the operator asks for all of them",
    "emails.search.queries.READY": "each team in turn",
    "emails.search.queries.WITH_EVENT": "each team in turn, as above",
    "emails.search.queries.WITH_WORK": "each team in turn, as above",
}
"""What reads an index from end to end, and why."""

SCAN = re.compile(r"(Seq Scan on|Index(?: Only)? Scan(?: Backward)? using|Bitmap Index Scan on) (\w+)")


async def test_no_plan_of_an_empty_database_reads_whole_tables(database_url: str) -> None:
    """A plan that was made before the first analysis is kept: it must be right for a million rows too."""
    conn = await asyncpg.connect(database_url, server_settings=BY_KEY)
    wrong = {}
    try:
        for table in LEASE_TABLES.values():
            for name, sql in table.statements.items():
                if found := whole(await plan(conn, f"{table.name}_{name}", sql)):
                    wrong[f"{table.name}.{name}"] = found
        for name in MODULES:
            for constant, sql in vars(import_module(f"pillarbox.{name}")).items():
                if isinstance(sql, str) and re.match(r"[\s(]*(SELECT|WITH|INSERT|UPDATE|DELETE)\b", sql):
                    where = f"{name}.{constant}"
                    if found := whole(await plan(conn, where.replace(".", "_"), sql)):
                        wrong[where] = found
    finally:
        await conn.close()
    assert {where: found for where, found in wrong.items() if where not in WHOLE} == {}
    assert WHOLE.keys() <= wrong.keys()


async def plan(conn: asyncpg.Connection, name: str, sql: str) -> list[str]:
    """The one plan of a statement, in lines."""
    places = max((int(place) for place in re.findall(r"\$(\d+)", sql)), default=0)
    given = f"({', '.join(['NULL'] * places)})" if places else ""
    await conn.execute(f"PREPARE {name} AS {sql}")
    return [row[0] for row in await conn.fetch(f"EXPLAIN (COSTS OFF) EXECUTE {name}{given}")]


def whole(lines: list[str]) -> list[str]:
    """The scans that have no condition on their index."""
    following = [*lines[1:], ""]
    return [
        line.strip()
        for line, after in zip(lines, following, strict=True)
        if SCAN.search(line) and "Index Cond" not in after
    ]
