"""Finds the effects of a migration on the release that still runs, from its statements.

A migration is applied while the previous release serves (docs/decisions/0051). So it only adds, rewrites
and scans no large table, and builds indexes of large tables beside the writers. Where one has to do otherwise
it says why, in a line `-- accepted KIND: reason`; `pillarbox upgrade --check` shows that reason to the
operator, and `tests/repository/test_migration_rules.py` refuses a migration that gives none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pillarbox.kernel.postgres.migrations import Migration, statements_of

SMALL = frozenset(
    {
        "teams",
        "team_members",
        "api_keys",
        "directory_keys",
        "domains",
        "dkim_keys",
        "directory_domains",
        "domain_claims",
    }
    | {
        "purges",
        "rollup_purges",
        "paused",
        "processes",
        "sites",
        "mta_sts_policies",
        "clock_jumps",
        "maintenance",
    }
    | {"contact_properties", "segments", "topics", "contact_imports", "link_keys"}
    | {"webhooks", "backups", "restored", "schema_migrations"}
)
"""Tables that have some thousand rows in the largest installation: reading all of one takes no time."""

ACCEPTED = re.compile(r"(?m)^-- accepted (?P<kind>\w+): (?P<reason>\S.*)$")
TABLE = r"(?:ONLY )?(?:public\.)?\"?(?P<table>\w+)\"?"
CREATED = re.compile(rf"(?i)^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?{TABLE}")
ALTERED = re.compile(rf"(?i)^ALTER TABLE (?:IF EXISTS )?{TABLE} (?P<actions>.*)$", re.DOTALL)
INDEXED = re.compile(rf"(?i)^CREATE (?:UNIQUE )?INDEX (?P<beside>CONCURRENTLY )?.*? ON {TABLE}")
WRITTEN = re.compile(rf"(?i)^(?:UPDATE|DELETE FROM|TRUNCATE|INSERT INTO) {TABLE}")
TRIGGER = re.compile(rf"(?i)^CREATE (?:CONSTRAINT )?TRIGGER .*? ON {TABLE}")
COLUMN = re.compile(r"(?i)^ADD (?:COLUMN )?(?!CONSTRAINT\b|CHECK\b|UNIQUE\b|PRIMARY\b|FOREIGN\b|EXCLUDE\b)")
VOLATILE = re.compile(
    r"(?i)\b(?:gen_random_uuid|clock_timestamp|random|nextval|uuidv7)\s*\(|GENERATED ALWAYS AS"
)
HARMLESS = re.compile(
    r"(?i)^(?:SELECT 1$|CREATE (?:OR REPLACE )?(?:FUNCTION|VIEW) |COMMENT ON |DROP INDEX CONCURRENTLY )"
    r"|^ALTER TABLE \S+ (?:SET \((?:autovacuum_|fillfactor)|VALIDATE CONSTRAINT )"
)

REMOVES, REWRITES, READS, BLOCKS, WRITES = "removal", "rewrite", "scan", "lock", "data"
MEANINGS = {
    REMOVES: "takes away or changes what the previous release uses",
    REWRITES: "writes the table anew, and nobody can use it meanwhile",
    READS: "reads the whole table while nobody can write to it",
    BLOCKS: "keeps writers from the table for as long as it works",
    WRITES: "changes or adds rows, as many as there are",
}
"""The effect of each kind of hazard, as the end of "the statement …"."""


class MigrationHazard(NamedTuple):
    """A statement of a migration that disturbs the running release. `reason` is why it was accepted, None
    where the migration gives none."""

    kind: str
    table: str
    statement: str
    reason: str | None


def hazards(migration: Migration) -> list[MigrationHazard]:
    """Return the statements of a migration that could break or slow the previous release."""
    reasons = {found["kind"]: found["reason"] for found in ACCEPTED.finditer(migration.sql)}
    statements = statements_of(migration.sql)
    new = {found["table"] for text in statements if (found := CREATED.match(text))}
    return [
        MigrationHazard(kind, table, text, reasons.get(kind))
        for text in statements
        for kind, table in _kinds(text)
        if table not in new and not (kind in (READS, BLOCKS, WRITES) and table in SMALL)
    ]


def tables_of(migration: Migration) -> list[str]:
    """Return the tables that a migration locks, without those that it makes."""
    statements = statements_of(migration.sql)
    new = {found["table"] for text in statements if (found := CREATED.match(text))}
    named = [
        found["table"]
        for text in statements
        for pattern in (ALTERED, INDEXED, WRITTEN, TRIGGER)
        if (found := pattern.match(text))
    ]
    return sorted(set(named) - new)


def _kinds(statement: str) -> Iterator[tuple[str, str]]:
    """Yield the kinds of concern of one statement, each with its table."""
    if CREATED.match(statement) or HARMLESS.match(statement):
        return
    if found := ALTERED.match(statement):
        yield from (
            (kind, found["table"]) for action in _actions(found["actions"]) for kind in _kinds_of(action)
        )
    elif found := INDEXED.match(statement):
        if not found["beside"]:
            yield BLOCKS, found["table"]
    elif found := TRIGGER.match(statement):
        yield BLOCKS, found["table"]
    elif found := WRITTEN.match(statement):
        yield WRITES, found["table"]
    else:
        # DROP, RENAME and whatever nobody has thought of.
        yield REMOVES, ""


def _kinds_of(action: str) -> Iterator[str]:
    """Yield the kinds of concern of one action of ALTER TABLE."""
    words = action.upper()
    if COLUMN.match(action):
        has_default = " DEFAULT " in words
        if VOLATILE.search(action):
            yield REWRITES
        if " NOT NULL" in words and not has_default:
            yield REMOVES
        if " CHECK " in words or " REFERENCES " in words or " UNIQUE" in words:
            yield READS
    elif words.startswith(("ADD CONSTRAINT", "ADD CHECK", "ADD UNIQUE", "ADD PRIMARY", "ADD FOREIGN")):
        # A constraint may refuse what the previous release writes, whether old rows are read or not.
        yield REMOVES
        if "NOT VALID" not in words:
            yield READS
    elif re.match(r"ALTER (COLUMN )?\S+ (SET DATA )?TYPE ", words):
        yield REMOVES
        yield REWRITES
    elif re.match(r"ALTER (COLUMN )?\S+ (SET (DEFAULT|STORAGE|STATISTICS)|DROP NOT NULL)", words):
        return
    elif re.match(r"ALTER (COLUMN )?\S+ SET NOT NULL", words):
        yield REMOVES
        yield READS
    else:
        yield REMOVES


def _actions(text: str) -> Sequence[str]:
    """Return the actions of an ALTER TABLE; a comma in brackets divides nothing."""
    depth, parts = 0, [""]
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]
