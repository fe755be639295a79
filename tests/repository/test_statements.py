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
    constants_used,
    pieced_statements,
    statement_constants,
    statements_of,
    written_statements,
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
    "automations.automation_work.is_busy": "whether anybody's work is due or held, for the poll of queues",
    "broadcasts.IS_WANTED": "as above",
    "delivery.HAS_MAIL": "as above",
    "delivery.deliveries.is_busy": "as above",
    "delivery.IS_PAUSED": "as above",
    "kernel.IS_DUE": "as above",
    "kernel.jobs.is_busy": "as above",
    "kernel.IS_HELD": "as above",
    "webhooks.webhook_deliveries.is_busy": "as above",
    "automations.HOLD": "after a restore all steps wait for the operator",
    "automations.automation_work.holders": "looks for processes that are gone, whoever's work they hold",
    "delivery.deliveries.holders": "as above",
    "kernel.forget_process": "whether a process that ends holds work, whoever's it is",
    "kernel.jobs.holders": "as above",
    "webhooks.webhook_deliveries.holders": "as above",
    "automations.STEPS": "corrects what a clock ahead has dated, whoever's it is",
    "automations.TRIGGERS": "as above",
    "broadcasts.resume_all": "after a restore the operator lets all broadcasts go on",
    "broadcasts.pause_all": "after a restore all broadcasts wait for the operator",
    "broadcasts.release_restored_jobs": "after a restore the operator lets all jobs go on",
    "delivery.COUNT": "the queue of the installation by destination",
    "demo.is_in_use": "whether anybody has mail, for a demo that is made beside it",
    "demo.keep_audit_entries": "a trigger is of the whole table",
    "demo.let_audit_entries_go": "as above",
    "demo.marked_people": "accounts that no team has any more",
    "demo.next_due": "the database of a month has one team",
    "delivery.items": "the size of the queue of the installation",
    "delivery.misdated_items": "a clock that was wrong has dated the items of all teams",
    "delivery.OWNS": "asks whether a dead process has items, whoever's they are",
    "delivery.REASON": "why the smarthost refuses the installation",
    "delivery.RELEASE": "the smarthost that all teams waited for is there again",
    "delivery.RELEASE_FOR_KEYS": "a key that teams waited for is there again",
    "delivery.REMOVE_OLD": "removes what no team's mail has reached for long",
    "delivery.RESUME_ALL": "the operator resumes every destination",
    "delivery.SAMPLE": "estimates the size of the queue of the installation",
    "delivery.SAMPLE_SIZE": "as above",
    "emails.DELETE_NAMED": "blobs are compared with the rows of the installation",
    "emails.NAMED": "as above",
    "people.place_behind": "the operator looks at the acts of all teams, a number of them at a time",
    "kernel.DUE_KINDS": "which kinds of jobs are due, whoever's they are",
    "kernel.MISDATED_KEYS": "a clock that was wrong has dated the keys of all teams",
    "kernel.REMOVE_OLD": "removes what no limit needs any more",
    "oauth.described": "the operator's list of programs",
    "webhooks.make_misdated_due": "a clock that was wrong has dated the deliveries of all teams",
    "webhooks.webhook_deliveries.count": "counts the queue of the installation",
    "webhooks.webhook_deliveries.sample": "as above",
}
"""Statements on tables of teams that need not name team_id, as `slice.NAME`, with the reason."""

NOT_PREPARED = {
    "backup.counts": "the table is named at run time, from the catalogue",
    "contacts.BELONG": "uses a temporary table of its transaction",
    "contacts.LOCK": "as above",
    "contacts.SKIP": "as above",
    "contacts.UPSERT": "as above",
    "contacts.staged_addresses": "as above",
    "contacts.unstage": "as above",
    "demo.remove": "the table is named at run time, from the catalogue",
    "emails.DELETE_NAMED": "uses a temporary table of its session",
    "emails.delete_named": "as above",
    "emails.listed": "as above",
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
    "contacts/conditions/queries.py": "asks several conditions of one contact in one statement",
    "demo/team_queries.py": "goes through the tables that the catalogue names",
    "kernel/postgres/combined_statement.py": "makes one statement of several whole ones",
    "kernel/postgres/embedded.py": "CREATE DATABASE takes no parameter",
    "kernel/postgres/migrations.py": "SET takes no parameter",
    "kernel/work/lease_table.py": "makes statements of descriptions of tables",
    "kernel/work/queue_poll.py": "makes one statement of several whole questions",
}
"""Modules that put statements together, with the reason."""


OUTSIDE_QUERIES = {
    "directory/": "each function is one statement, and other slices call it",
    "kernel/postgres/": "about PostgreSQL itself: sessions, notifications, limits, migrations",
    "kernel/work/queue_poll.py": "makes one statement of the questions that packages hand to it",
}
"""Packages and modules whose statements need not stand in `*queries.py`, with the reason."""

QUESTIONS = {
    "pillarbox.broadcasts.copying_queries.IS_WANTED",
    "pillarbox.kernel.http.queries.IS_IN_MAINTENANCE",
    "pillarbox.delivery.queries.HAS_COMPLAINTS",
    "pillarbox.delivery.queries.HAS_MAIL",
    "pillarbox.delivery.queries.IS_PAUSED",
    "pillarbox.kernel.security.rate_queries.HAS_OTHERS",
    "pillarbox.kernel.work.claim_queries.IS_DUE",
    "pillarbox.kernel.work.claim_queries.IS_HELD",
    "pillarbox.webhooks.listening.subscription_queries.IS_BUSY",
}
"""Statements that their package hands to the poll of queues, which asks all of them at once."""


def stands_outside(module: str) -> bool:
    """Whether a statement of this module stands where none should. Invariants are data of `pillarbox verify`,
    each a sentence with its question."""
    return not module.endswith(("queries.py", "/invariants.py")) and not module.startswith(
        tuple(OUTSIDE_QUERIES)
    )


REPEATED_COLUMNS = {
    "delivery.SUSPECTS": "has no list above its branches",
    "emails.LIST": "lists of mail are read often, and branches that name their columns are a tenth faster",
    "logs.LIST": "as above",
    "receiving.LIST": "as above",
}
"""Statements whose branches repeat their columns, as `slice.NAME`, with the reason."""

BRANCH = re.compile(r"\(SELECT ([a-z_]\w*(?:, [a-z_]\w*){2,}) FROM ")


def repeats_columns(sql: str) -> bool:
    """Whether two branches of the statement name the same three or more columns."""
    branches = BRANCH.findall(" ".join(sql.split()))
    return len(branches) > len(set(branches))


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


def test_no_division_by_zero_stands_for_an_answer() -> None:
    """A statement that must undo itself calls `fail_statement` of the schema."""
    caught = [path for path in SOURCE.rglob("*.py") if "DivisionByZero" in path.read_text(encoding="utf-8")]
    assert caught == []


def test_branches_do_not_repeat_their_columns() -> None:
    repeated = {statement.where for statement in all_statements() if repeats_columns(statement.sql)}
    assert repeated == REPEATED_COLUMNS.keys(), "SELECT * in the branches, and the columns once above them"


def test_the_rule_of_columns_finds_a_violation() -> None:
    branch = "(SELECT id, name, at\n FROM things WHERE team_id = $1)"
    assert repeats_columns(f"SELECT id, name, at FROM ({branch} UNION ALL {branch}) AS page")
    assert not repeats_columns(f"SELECT id, name, at FROM ({branch} UNION ALL (SELECT 1)) AS page")


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


def test_statements_stand_in_queries() -> None:
    outside = {statement.module for statement in written_statements() if stands_outside(statement.module)}
    assert outside == set(), "move the statement into a function of the package's queries.py"


def test_every_exception_of_queries_is_needed() -> None:
    modules = {statement.module for statement in written_statements()}
    others = [module for module in modules if not module.endswith(("queries.py", "/invariants.py"))]
    unused = {place for place in OUTSIDE_QUERIES if not any(m.startswith(place) for m in others)}
    assert unused == set(), "remove it from the list"


@pytest.mark.parametrize(
    ("module", "is_outside"),
    [
        ("topics/collector.py", True),
        ("kernel/http/maintenance.py", True),
        ("topics/queries.py", False),
        ("oauth/clients/client_queries.py", False),
        ("people/invariants.py", False),
        ("kernel/postgres/notify.py", False),
    ],
)
def test_statements_outside_of_queries_are_found(module: str, *, is_outside: bool) -> None:
    assert stands_outside(module) is is_outside


def statements_by_module() -> dict[str, set[str]]:
    """The statements of each module that are constants."""
    return {
        ".".join(("pillarbox", *path.relative_to(SOURCE).with_suffix("").parts)): names
        for path in SOURCE.rglob("*queries.py")
        if (names := statement_constants(tree_of(path)))
    }


def test_a_statement_is_run_by_a_function_of_its_module() -> None:
    constants = statements_by_module()
    used = {name for path in SOURCE.rglob("*.py") for name in constants_used(tree_of(path), constants)}
    assert used == QUESTIONS, "write a function beside the statement that runs it and returns typed rows"


@pytest.mark.parametrize(
    "source",
    [
        "from pillarbox.topics import queries\nawait pool.fetch(queries.LIST)",
        "from pillarbox.topics import queries as sql\nawait pool.fetch(sql.LIST)",
        "from pillarbox.topics.queries import LIST\nawait pool.fetch(LIST)",
    ],
)
def test_a_statement_that_others_run_is_found(source: str) -> None:
    constants = {"pillarbox.topics.queries": {"LIST"}}
    assert "pillarbox.topics.queries.LIST" in set(constants_used(ast.parse(source), constants))
    assert not list(constants_used(ast.parse(source.replace("LIST", "listed")), constants))


def test_every_table_with_leases_is_described() -> None:
    schema = (SOURCE / "schema" / "schema.sql").read_text(encoding="utf-8")
    tables = re.findall(r"(?ms)^CREATE TABLE (\w+) \((.*?)^\)", schema)
    leased = {name for name, columns in tables if re.search(r"^\s+leased_until\b", columns, re.M)}
    assert leased == {table.name for table in LEASE_TABLES.values()}, "describe it by a LeaseTable"


def test_statements_are_seen_in_modules_of_every_name() -> None:
    seen = {statement.module for statement in all_statements()}
    assert {"webhooks/invariants.py", "topics/queries.py", "timeline/rollup_queries.py"} <= seen
    assert list(statements_of(SOURCE / "topics" / "queries.py"))
