"""Who adds jobs, and who writes leases (docs/decisions/0155): `kernel.work`, and those that are listed."""

from __future__ import annotations

import re

import pytest

from kit.statements import LEASE_TABLES, SqlText, all_statements

ADDS_JOBS = re.compile(r"\bINSERT\s+INTO\s+jobs\b")
ASSIGNS_LEASE = re.compile(r"(?<![\w.])leased_until\s*=")
INSERTS = re.compile(r"\bINSERT\s+INTO\s+(\w+)(?:\s+AS\s+\w+)?\s*\(([^)]*)\)")

WORK = "kernel/work/"

LEASE_WRITERS = {
    "automations.CLAIM": "the claim of steps: in the order of their contact",
    "automations.FREE_CLAIMED": "an outcome: the step is tried again, or is due as it was",
    "automations.HOLD": "after a restore all steps wait for the operator",
    "automations.LEAVE": "an outcome: the step was not begun",
    "backup.free_jobs": "after a restore no process holds a job",
    "backup.hold_deliveries": "after a restore all work waits for the operator",
    "backup.hold_jobs": "as above",
    "backup.hold_webhook_deliveries": "as above",
    "delivery.CLAIM": "the claim of mail: shares of teams and destinations",
    "delivery.FREE_EXPIRED": "a lost item may have been sent, which its row says from then on",
    "delivery.FREE_OWNED": "as above",
    "delivery.HOLD": "an outcome: the relay refuses us",
    "delivery.HOLD_FOR_KEY": "an outcome: the key that signs is missing",
    "delivery.RETRY_FETCHING": "the operator has files fetched again, whoever fetches them now",
    "delivery.SETTLE": "an outcome of many items, with what follows from it",
    "emails.STORE": "the email enters the queue as an item of the process that sends it",
    "emails.STORE_WORK": "as above",
    "webhooks.CLAIM": "the claim of deliveries: those of one endpoint, with those that are void",
    "webhooks.SETTLE": "an outcome of many deliveries, with what follows from it",
}
"""Statements that write leases outside `kernel.work`, as `slice.NAME`, with the reason."""


def writes_lease(statement: SqlText) -> bool:
    """Whether the statement leases a row to somebody, or frees it."""
    tables = {table.name for table in LEASE_TABLES.values()}
    return ASSIGNS_LEASE.search(statement.sql) is not None or any(
        table in tables and "leased_until" in columns for table, columns in INSERTS.findall(statement.sql)
    )


def test_jobs_are_added_in_one_module() -> None:
    modules = {statement.module for statement in all_statements() if ADDS_JOBS.search(statement.sql)}
    assert modules == {"kernel/work/job_queries.py"}, "add jobs by kernel.work.job_queries"


def test_leases_are_written_by_one_package() -> None:
    described = {f"{module.split('/')[0]}.{table.name}" for module, table in LEASE_TABLES.items()}
    others = {
        statement.where
        for statement in all_statements()
        if writes_lease(statement)
        and not statement.module.startswith(WORK)
        and statement.where.rpartition(".")[0] not in described
    }
    assert others == LEASE_WRITERS.keys(), "write leases in kernel.work, or say in LEASE_WRITERS why not"


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE jobs SET owner = NULL, leased_until = NULL WHERE team_id = $1",
        "INSERT INTO deliveries (team_id, owner, leased_until) VALUES ($1, $2, $3)",
    ],
)
def test_the_rule_of_leases_finds_a_violation(sql: str) -> None:
    assert writes_lease(SqlText("logs/queries.py", "F", sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT team_id FROM jobs WHERE team_id = $1 AND leased_until < $2",
        "SELECT d.team_id FROM deliveries d WHERE d.leased_until = $1",
    ],
)
def test_the_rule_of_leases_lets_readers_pass(sql: str) -> None:
    assert not writes_lease(SqlText("logs/queries.py", "F", sql))
