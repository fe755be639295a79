"""Every column that decides when work begins has its place in docs/decisions/0161."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCHEMA = (ROOT / "src/pillarbox/schema/schema.sql").read_text()
DECISION = (ROOT / "docs/decisions/0161-due-times-and-a-clock-that-was-ahead.md").read_text()

TABLE = re.compile(r"CREATE (?:UNLOGGED )?TABLE (\w+) \((.*?)\n\)", re.S)
INSTANT = re.compile(r"^\s+(\w+)\s+timestamptz", re.M)
AHEAD = re.compile(
    r"(due|expires|ends|scheduled|purge|retires|enabled|active|next|begins|starts|retry)(_\w+)?_at$|(_until|_from)$"
)
"""Names of instants that lie ahead when they are written. All instants of a table with `due_at` count."""


def columns() -> set[str]:
    """Those of the schema, as `table.column`."""
    found = set()
    for table, body in TABLE.findall(SCHEMA):
        instants = INSTANT.findall(body)
        is_queue = "due_at" in instants
        found |= {
            f"{table}.{name}" for name in instants if is_queue or AHEAD.search(name) or name == "due_at"
        }
    return found


def test_every_due_time_says_what_a_clock_that_is_set_back_makes_of_it() -> None:
    rows = [line.split("|")[1] for line in DECISION.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+\.\w+)`", row)}
    assert named == columns()


def test_the_schema_is_read_as_a_whole() -> None:
    assert len(TABLE.findall(SCHEMA)) == len(re.findall(r"^CREATE (?:UNLOGGED )?TABLE", SCHEMA, re.M))
    assert {"jobs.due_at", "automation_work.waits_from", "rate_windows.ends_at"} <= columns()
