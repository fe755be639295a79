"""What the database did for a statement: which rows it read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import asyncpg


async def plan(conn: asyncpg.Connection, sql: str, args: tuple[Any, ...]) -> dict[str, Any]:
    """Return what the database did for a statement."""
    literals = ", ".join(literal(arg) for arg in args)
    await conn.execute(f"PREPARE asked AS {sql}")
    found = await conn.fetchval(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE asked({literals})")
    await conn.execute("DEALLOCATE asked")
    made: dict[str, Any] = json.loads(found)[0]["Plan"]
    return made


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    return f"ARRAY{value}" if isinstance(value, list) else f"'{value}'"


def rows_read(node: dict[str, Any]) -> Iterator[int]:
    """Yield how many rows each scan of a plan has read."""
    if re.search(r"Scan$", node["Node Type"]) and "Relation Name" in node:
        yield (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    else:
        yield 0
    for inner in node.get("Plans", ()):
        yield from rows_read(inner)
