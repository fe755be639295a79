"""Migrations go with the previous release: they add, and they stop nobody (docs/decisions/0051)."""

from __future__ import annotations

import pytest

from pillarbox.kernel.postgres.migration_rules import MEANINGS, SMALL, hazards, tables_of
from pillarbox.kernel.postgres.migrations import COMPATIBLE, Migration, migrations_in, statements_of

FIRST_KEPT = 17
"""Migrations before it were made when an installation was stopped for an upgrade."""


def kept() -> list[Migration]:
    return [migration for migration in migrations_in() if migration.version >= FIRST_KEPT]


def kinds(sql: str) -> list[str]:
    return [hazard.kind for hazard in hazards(Migration(99, "test", sql))]


def test_a_migration_says_with_which_release_it_goes() -> None:
    for migration in kept():
        assert COMPATIBLE.search(migration.sql), f"{migration.name} has no line `-- compatible since: N`"
        assert migration.compatible_since < migration.version, migration.name


def test_a_migration_adds_and_stops_nobody_or_says_why() -> None:
    """Additive, no rewrite, no scan of a large table, indexes CONCURRENTLY; or `-- accepted KIND: reason`."""
    unexplained = [
        f"{migration.version:04}: {hazard.kind} of {hazard.table}: {hazard.statement}"
        for migration in kept()
        for hazard in hazards(migration)
        if hazard.reason is None
    ]
    assert unexplained == []


def test_a_concurrent_migration_does_nothing_else() -> None:
    """It runs outside a transaction, so it must be one that may run again."""
    for migration in migrations_in():
        if migration.is_concurrent:
            first, *others = statements_of(migration.sql)
            assert first.startswith("DROP INDEX CONCURRENTLY IF EXISTS"), migration.name
            assert all(" CONCURRENTLY " in statement for statement in others), migration.name


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE emails ADD COLUMN a text", []),
        ("ALTER TABLE emails ADD COLUMN a text NOT NULL DEFAULT ''", []),
        ("ALTER TABLE emails ADD COLUMN a timestamptz DEFAULT now(), ADD b integer", []),
        ("ALTER TABLE emails ADD COLUMN a text NOT NULL", ["removal"]),
        ("ALTER TABLE emails ADD COLUMN a uuid DEFAULT gen_random_uuid()", ["rewrite"]),
        ("ALTER TABLE emails ADD COLUMN a integer CHECK (a > 0)", ["scan"]),
        ("ALTER TABLE teams ADD COLUMN a integer CHECK (a > 0)", []),
        ("ALTER TABLE emails DROP COLUMN subject", ["removal"]),
        ("ALTER TABLE emails RENAME TO mails", ["removal"]),
        ("ALTER TABLE emails ALTER COLUMN subject TYPE varchar(10)", ["removal", "rewrite"]),
        ("ALTER TABLE emails ALTER subject SET NOT NULL", ["removal", "scan"]),
        ("ALTER TABLE emails ALTER COLUMN sent_at DROP NOT NULL", []),
        ("ALTER TABLE emails ADD CONSTRAINT a CHECK (subject <> '') NOT VALID", ["removal"]),
        ("ALTER TABLE emails ADD CONSTRAINT a CHECK (subject <> '')", ["removal", "scan"]),
        ("CREATE INDEX a ON emails (subject)", ["lock"]),
        ("CREATE UNIQUE INDEX a ON webhooks (team_id)", []),
        ("DROP INDEX CONCURRENTLY IF EXISTS a; CREATE INDEX CONCURRENTLY a ON emails (subject)", []),
        ("CREATE TABLE new (a integer); CREATE INDEX b ON new (a); INSERT INTO new SELECT 1", []),
        ("UPDATE emails SET subject = ''", ["data"]),
        ("UPDATE teams SET name = ''", []),
        ("DROP TABLE emails", ["removal"]),
        ("VACUUM FULL emails", ["removal"]),
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM emails; END $$", []),
        ("CREATE TRIGGER t AFTER INSERT ON emails FOR EACH STATEMENT EXECUTE FUNCTION f()", ["lock"]),
    ],
)
def test_what_a_statement_means(sql: str, expected: list[str]) -> None:
    assert kinds(sql) == expected
    assert set(expected) <= MEANINGS.keys()


def test_a_reason_stands_beside_what_it_excuses() -> None:
    sql = (
        "-- accepted lock: the table has a row per team\nCREATE INDEX a ON emails (subject);\nDROP TABLE logs"
    )
    found = hazards(Migration(99, "test", sql))
    assert [(hazard.kind, hazard.reason) for hazard in found] == [
        ("lock", "the table has a row per team"),
        ("removal", None),
    ]


def test_the_tables_that_a_migration_locks() -> None:
    made = "CREATE TABLE new (a integer); CREATE INDEX CONCURRENTLY b ON jobs (id)"
    sql = f"{made}; ALTER TABLE emails ADD a text"
    assert tables_of(Migration(99, "test", sql)) == ["emails", "jobs"]


def test_small_tables_are_tables() -> None:
    every = " ".join(migration.sql for migration in migrations_in())
    assert {name for name in SMALL if f"TABLE {name} (" not in every} == {"schema_migrations"}
