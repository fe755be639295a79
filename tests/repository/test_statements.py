"""What holds for every SQL statement of the program, wherever it stands (architecture 2.2; CONTRIBUTING)."""

from __future__ import annotations

import ast
import re

import asyncpg
import pytest

from kit.sources import tree_of
from kit.statements import (
    LEASE_TABLES,
    SOURCE,
    STATEMENT,
    SqlText,
    all_statements,
    pieced_statements,
    statements_of,
)
from schema.test_tenancy import GLOBAL

TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|USING|ONLY|TABLE|TABLESAMPLE|ANALYZE)\s+\(?\s*(\w+)")

WHOLE_INSTALLATION = {
    "backup": "a backup holds the rows of all teams",
    "cli/backups": "as above",
    "doctor": "examines the installation",
}
"""Packages and modules whose statements are about all teams, with the reason."""

CROSS_TEAM = {
    "automations.IS_BUSY": "whether anybody's work is due or held, for the poll of queues",
    "broadcasts.IS_WANTED": "as above",
    "delivery.HAS_MAIL": "as above",
    "delivery.IS_BUSY": "as above",
    "delivery.IS_PAUSED": "as above",
    "kernel.IS_DUE": "as above",
    "kernel.IS_HELD": "as above",
    "webhooks.IS_BUSY": "as above",
    "automations.HOLD": "after a restore all steps wait for the operator",
    "automations.automation_work.holders": "looks for processes that are gone, whoever's work they hold",
    "delivery.deliveries.holders": "as above",
    "kernel.forget_process": "whether a process that ends holds work, whoever's it is",
    "kernel.jobs.holders": "as above",
    "webhooks.webhook_deliveries.holders": "as above",
    "automations.STEPS": "corrects what a clock ahead has dated, whoever's it is",
    "automations.TRIGGERS": "as above",
    "broadcasts.GO_ON": "after a restore the operator lets all broadcasts go on",
    "broadcasts.PAUSE": "after a restore all broadcasts wait for the operator",
    "broadcasts.RELEASE_JOBS": "after a restore the operator lets all jobs go on",
    "delivery.COUNT": "the queue of the installation by destination",
    "delivery.DestinationCounts": "the size of the queue of the installation",
    "delivery.MISDATED": "a clock that was wrong has dated the items of all teams",
    "delivery.OWNS": "asks whether a dead process has items, whoever's they are",
    "delivery.REASON": "why the smarthost refuses the installation",
    "delivery.RELEASE": "the smarthost or a key that all teams waited for is there again",
    "delivery.REMOVE_OLD": "removes what no team's mail has reached for long",
    "delivery.RESUME_ALL": "the operator resumes every destination",
    "delivery.SAMPLE": "estimates the size of the queue of the installation",
    "emails.DELETE_NAMED": "blobs are compared with the rows of the installation",
    "emails.NAMED": "as above",
    "kernel.DUE_KINDS": "which kinds of jobs are due, whoever's they are",
    "kernel.MISDATED_KEYS": "a clock that was wrong has dated the keys of all teams",
    "kernel.REMOVE_OLD": "removes what no limit needs any more",
    "oauth.described": "the operator's list of programs",
    "webhooks.MISDATED": "a clock that was wrong has dated the deliveries of all teams",
    "webhooks.SAMPLE": "estimates the queue of the installation",
}
"""Statements on tables of teams that need not name team_id, as `slice.NAME`, with the reason."""

NOT_PREPARED = {
    "backup.counts": "the table is named at run time, from the catalogue",
    "contacts.BELONG": "uses a temporary table of its transaction",
    "contacts.LOCK": "as above",
    "contacts.SKIP": "as above",
    "contacts.UPSERT": "as above",
    "emails.COUNT": "uses a temporary table of its session",
    "emails.DELETE_NAMED": "as above",
    "emails.UNNAMED": "as above",
    "kernel.QueuePoll": "a piece of the poll of queues; its questions are prepared each",
    "kernel._WITH": "a key word of combined statements",
    "kernel._checked": "a piece of combined statements",
    "kernel._kinds_of": "patterns that find statements in migrations",
    "kernel.apply": "a setting of migrations with its number",
    "kernel.ensure_database": "names the database that it makes",
}
"""Statements that PostgreSQL cannot prepare against the schema alone, as `slice.NAME`, with the reason."""

PIECES = {
    "backup/queries.py": "counts the rows of tables that the catalogue names",
    "kernel/postgres/combined_statement.py": "makes one statement of several whole ones",
    "kernel/postgres/embedded.py": "CREATE DATABASE takes no parameter",
    "kernel/postgres/migrations.py": "SET takes no parameter",
    "kernel/work/lease_table.py": "makes statements of descriptions of tables",
    "kernel/work/queue_poll.py": "makes one statement of several whole questions",
}
"""Modules that put statements together, with the reason."""


def is_about_all(statement: SqlText) -> bool:
    return any(
        statement.module == place or statement.module.startswith(f"{place}/") for place in WHOLE_INSTALLATION
    )


def tenant_tables() -> set[str]:
    schema = (SOURCE / "schema" / "schema.sql").read_text(encoding="utf-8")
    return set(re.findall(r"(?m)^CREATE (?:UNLOGGED )?TABLE (\w+)", schema)) - GLOBAL.keys()


def names_no_team(statement: SqlText, tables: set[str]) -> bool:
    return bool(tables & set(TABLE.findall(statement.sql))) and not re.search(r"\bteam_id\b", statement.sql)


@pytest.mark.parametrize("text", ["SELECT 1 ", " (SELECT 1) UNION (SELECT 2)", "\n    ((SELECT 1) )"])
def test_a_statement_may_begin_with_a_bracket(text: str) -> None:
    """One that a lint does not see as a statement is not checked at all."""
    assert STATEMENT.match(text)


def test_every_statement_on_a_table_of_teams_names_the_team() -> None:
    tables = tenant_tables()
    loose = {
        statement.where
        for statement in all_statements()
        if names_no_team(statement, tables) and not is_about_all(statement)
    }
    assert loose == CROSS_TEAM.keys(), "name team_id, or say in CROSS_TEAM why it is about all teams"


def test_the_rule_of_teams_finds_a_violation() -> None:
    tables = tenant_tables()
    assert names_no_team(SqlText("m.py", "F", "SELECT id FROM emails WHERE id = $1"), tables)
    assert not names_no_team(SqlText("m.py", "F", "SELECT id FROM emails WHERE team_id = $1"), tables)
    assert not names_no_team(SqlText("m.py", "F", "SELECT id FROM processes"), tables)


def test_no_statement_is_put_together_from_pieces() -> None:
    """API-08."""
    pieced = {
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("*.py"))
        if next(pieced_statements(tree_of(path)), None) is not None
    }
    assert pieced == PIECES.keys(), "write the statement as one text; an optional filter is a parameter"


@pytest.mark.parametrize(
    "source",
    [
        'QUERY = f"SELECT id FROM emails WHERE team_id = $1 {more}"',
        'ASK = """SELECT 1 """\nASK_LATER = ASK.replace("1", "2")',
        'ASK = """SELECT 1 """\nASK_MORE = ASK + " FOR UPDATE"',
        'QUERY = "SELECT %s " % name',
        'QUERY = "SELECT {} ".format(name)',
        "from pillarbox.topics.queries import LIST\nMORE = LIST + tail",
    ],
)
def test_the_rule_of_pieces_finds_a_violation(source: str) -> None:
    assert list(pieced_statements(ast.parse(source)))


async def test_every_statement_prepares_against_the_schema(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    wrong = {}
    for statement in all_statements():
        try:
            await conn.prepare(statement.sql)
        except asyncpg.PostgresError as error:
            wrong[statement.where] = str(error)
    await conn.close()
    assert {where: wrong[where] for where in wrong.keys() - NOT_PREPARED.keys()} == {}
    assert NOT_PREPARED.keys() <= wrong.keys()


def test_every_table_with_leases_is_described() -> None:
    schema = (SOURCE / "schema" / "schema.sql").read_text(encoding="utf-8")
    tables = re.findall(r"(?ms)^CREATE TABLE (\w+) \((.*?)^\)", schema)
    leased = {name for name, columns in tables if re.search(r"^\s+leased_until\b", columns, re.M)}
    assert leased == {table.name for table in LEASE_TABLES.values()}, "describe it by a LeaseTable"


def test_statements_are_seen_in_modules_of_every_name() -> None:
    seen = {statement.module for statement in all_statements()}
    assert {"kernel/work/jobs.py", "topics/queries.py", "timeline/rollup_queries.py"} <= seen
    assert list(statements_of(SOURCE / "topics" / "queries.py"))
