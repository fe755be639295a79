"""`schema.sql` is the whole truth: the migrations lead to exactly it."""

from __future__ import annotations

from collections.abc import Iterator

import asyncpg
import pytest

from pillarbox.kernel.postgres.migrations import FOLDER

SCHEMA = FOLDER.parent / "schema.sql"

CATALOG = {
    "columns": """
        SELECT c.relname, c.relkind::text, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod),
               a.attnotnull, a.attidentity::text, a.attgenerated::text, a.attstorage::text,
               a.attcompression::text, pg_get_expr(d.adbin, d.adrelid)
          FROM pg_class c
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
          LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
    """,
    "relations": """
        SELECT c.relname, c.relkind::text, c.relpersistence::text, c.reloptions::text, t.reloptions::text,
               pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid)
          FROM pg_class c
          LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind <> 'i'
    """,
    "indexes": """
        SELECT c.relname, pg_get_indexdef(c.oid)
          FROM pg_class c
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('i', 'I')
    """,
    "constraints": """
        SELECT n.conrelid::regclass::text, n.conname, pg_get_constraintdef(n.oid), n.convalidated
          FROM pg_constraint n
         WHERE n.connamespace = 'public'::regnamespace
    """,
    "functions": """
        SELECT p.proname, pg_get_functiondef(p.oid)
          FROM pg_proc p
         WHERE p.pronamespace = 'public'::regnamespace AND p.prokind IN ('f', 'p')
           AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
    """,
    "triggers": """
        SELECT t.tgrelid::regclass::text, pg_get_triggerdef(t.oid) FROM pg_trigger t WHERE NOT t.tgisinternal
    """,
    "types": """
        SELECT t.typname, t.typtype::text, array(SELECT e.enumlabel FROM pg_enum e
                                                  WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder)::text
          FROM pg_type t
         WHERE t.typnamespace = 'public'::regnamespace AND t.typtype IN ('e', 'd')
    """,
    "extensions": "SELECT extname FROM pg_extension",
    "comments": "SELECT objoid::regclass::text, objsubid, description FROM pg_description "
    "WHERE classoid = 'pg_class'::regclass AND objoid::regclass::text NOT LIKE 'pg\\_%'",
}

MIGRATOR = "schema_migrations"

SETTINGS = """
    SELECT c.relname AS name, c.reloptions AS options, t.reloptions AS toast
      FROM pg_class c
      LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'schema_migrations'
"""


@pytest.fixture
def blank_url(databases) -> Iterator[str]:  # type: ignore[no-untyped-def]
    url = databases.fresh(template="template0")
    yield url
    databases.drop(url)


async def catalog_of(conn: asyncpg.Connection) -> dict[str, set[str]]:
    """Every fact of the catalog as text, without the migrator's own table."""
    return {
        name: {repr(tuple(row)) for row in await conn.fetch(sql) if MIGRATOR not in repr(tuple(row))}
        for name, sql in CATALOG.items()
    }


async def test_the_migrations_lead_to_the_schema(database_url: str, blank_url: str) -> None:
    migrated, written = await asyncpg.connect(database_url), await asyncpg.connect(blank_url)
    await written.execute(SCHEMA.read_text(encoding="utf-8"))
    wanted, found = await catalog_of(written), await catalog_of(migrated)
    await migrated.close()
    await written.close()
    assert wanted["columns"]
    differences = {
        name: {"only in schema.sql": facts - found[name], "only by the migrations": found[name] - facts}
        for name, facts in wanted.items()
        if facts != found[name]
    }
    assert differences == {}, (
        "schema.sql and the migrations differ. A migration appends: put a new column last in its table, where"
        " `ADD COLUMN` puts it, and write defaults, types and index definitions alike in both"
    )


async def test_the_comparison_sees_a_missing_index(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    before = await catalog_of(conn)
    await conn.execute("DROP INDEX directory_keys_owner")
    after = await catalog_of(conn)
    await conn.close()
    assert before["indexes"] - after["indexes"]


async def test_every_table_has_autovacuum_settings_of_its_own(database_url: str) -> None:
    """Retention once left half a million dead rows in a table that had none (docs/decisions/0050)."""
    conn = await asyncpg.connect(database_url)
    try:
        rows = await conn.fetch(SETTINGS)
    finally:
        await conn.close()
    found = {row["name"]: dict(option.split("=") for option in row["options"] or ()) for row in rows}
    dead = "autovacuum_vacuum_scale_factor"
    assert len(found) > 40
    assert [name for name, options in found.items() if float(options.get(dead, 1)) > 0.1] == []


async def test_what_large_values_leave_behind_is_vacuumed_as_early_as_their_rows(database_url: str) -> None:
    """Bodies and files lie in the table's TOAST part, which does not follow the settings of the table."""
    conn = await asyncpg.connect(database_url)
    try:
        rows = await conn.fetch(SETTINGS)
    finally:
        await conn.close()
    bodies = {"contents", "attachments", "received_sources", "captured", "metric_pieces"}
    found = {row["name"] for row in rows if "autovacuum_vacuum_scale_factor=0.02" in (row["toast"] or ())}
    assert found == bodies
