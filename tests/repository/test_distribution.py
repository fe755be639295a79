"""What would run where the tables are distributed by team over several servers (docs/decisions/0052).

There is no Citus here. What its documentation asks of tables and statements is checked instead.
"""

from __future__ import annotations

import re
from pathlib import Path

import asyncpg

from kit.statements import SOURCE, all_statements

RECORD = Path(__file__).parents[2] / "docs" / "decisions" / "0052-distribution.md"
DISTRIBUTE = SOURCE / "schema" / "distribute.sql"

STAYS = (
    {
        "processes",
        "clock_jumps",
        "maintenance",
        "mta_sts_policies",
        "sites",
        "key_ring_keys",
        "blob_store",
        "schema_migrations",
    }
    | {
        "backups",
        "examinations",
        "contact_terms_progress",
        "engagement_progress",
        "provider_progress",
        "restored",
        "link_keys",
    }
    | {
        "rate_nodes",
        "rate_windows",
    }
    | {
        "person_sessions",
        "person_passkeys",
        "person_challenges",
        "person_recovery_codes",
        "person_links",
        "person_openid_links",
        "person_openid_states",
        "person_address_changes",
    }
    | {
        "oauth_keys",
        "oauth_requests",
        "oauth_documents",
        "oauth_logos",
    }
)
"""Tables that are no team's, or last a second, and stay on the coordinator."""

ONE_TEAM = re.compile(r"\bteam_id\s*=\s*\$\d+", re.I)

OBSTACLES = {
    "locks rows": r"\bFOR (NO KEY )?(UPDATE|SHARE|KEY SHARE)\b",
    "is recursive": r"\bWITH RECURSIVE\b",
    "samples a table": r"\bTABLESAMPLE\b",
    "joins by ctid": r"\bctid\b",
    "joins LATERAL": r"\bLATERAL\b",
    "measures a table": r"\bpg_relation_size\b",
    "changes rows by a join with parameters": r"\b(UPDATE|DELETE)\b[\s\S]*\b(unnest|json_to_recordset)\(",
}
"""What a statement over several teams may not do, by a pattern that shows it."""

STUBS = """
    CREATE TABLE placed (name text PRIMARY KEY, how text NOT NULL, colocated text);
    CREATE FUNCTION create_reference_table(name text) RETURNS void LANGUAGE sql AS
        $$ INSERT INTO placed VALUES (name, 'reference', NULL) $$;
    CREATE FUNCTION create_distributed_table(name text, by_column text, colocate_with text) RETURNS void
        LANGUAGE sql AS $$ INSERT INTO placed VALUES (name, by_column, colocate_with) $$;
    CREATE FUNCTION create_distributed_function(signature regprocedure) RETURNS void LANGUAGE sql AS '';
"""

UNIQUE = """
    SELECT c.relname, array_agg(a.attname::text) AS columns
      FROM pg_index i
      JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = 'public'::regnamespace
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
     WHERE i.indisunique
     GROUP BY c.relname, i.indexrelid
"""

REFERENCES = """
    SELECT f.conrelid::regclass::text AS name, f.confrelid::regclass::text AS target,
           array(SELECT a.attname::text FROM pg_attribute a
                  WHERE a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey)) AS columns
      FROM pg_constraint f
     WHERE f.contype = 'f'
"""

IDENTITIES = """
    SELECT attrelid::regclass::text AS name, format_type(atttypid, NULL) AS type
      FROM pg_attribute WHERE attidentity <> ''
"""


async def test_every_table_has_its_place(database_url: str) -> None:
    """Unique keys and references of a distributed table hold the column by which it is distributed; there is
    no trigger on it, and no identity but a bigint."""
    conn = await asyncpg.connect(database_url)
    try:
        await conn.execute(STUBS)
        await conn.execute(DISTRIBUTE.read_text(encoding="utf-8"))
        placed = {row["name"]: (row["how"], row["colocated"]) for row in await conn.fetch("TABLE placed")}
        tables = await conn.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        unique, references = await conn.fetch(UNIQUE), await conn.fetch(REFERENCES)
        triggers = await conn.fetch("SELECT tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal")
        identities = await conn.fetch(IDENTITIES)
    finally:
        await conn.close()
    distributed = {name for name, (how, _) in placed.items() if how == "team_id"}
    assert {row["tablename"] for row in tables} - {"placed"} - STAYS == placed.keys()
    assert {placed[name][1] for name in distributed} == {"none", "emails"}
    assert [row for row in unique if row["relname"] in distributed and "team_id" not in row["columns"]] == []
    for row in references:
        assert row["name"] in distributed, "only tables of a team refer to others"
        assert row["target"] in distributed
        assert "team_id" in row["columns"]
    assert triggers == []
    assert {row["type"] for row in identities} == {"bigint"}


def test_the_record_names_every_statement_that_would_not_run() -> None:
    """A statement that names one team runs on the server of that team, whatever it does. A new one over
    several teams is written without these, or named in the record."""
    found = set()
    for statement in all_statements():
        if ONE_TEAM.search(statement.sql):
            continue
        why = [what for what, shown in OBSTACLES.items() if re.search(shown, statement.sql, re.I)]
        if why:
            found.add(f"{statement.where}: {', '.join(why)}")
    block = RECORD.read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    assert sorted(found) == block.splitlines()
