"""A loop that runs for ever uses `LoopFailures`: it goes on after a failure, later each time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "pillarbox"

OTHERS = {
    "broadcasts/commands/progress.py:follow": "a command: ends with the broadcast",
    "contacts/commands/importing.py:followed": "a command: ends with the import",
    "delivery/copies.py:_ask": "ends when nobody asks",
    "delivery/copy_window.py:limit_copies": "counts in memory alone",
    "delivery/smtp/mta_sts_policies.py:idle": "ends when nothing runs",
    "emails/retention.py:_pages": "pages of one run of a periodic job",
    "inboxes/drafts/retention.py:purge": "batches of one run of a periodic job",
    "inboxes/threads/purge.py:_of_team": "batches of one run of a periodic job",
    "inboxes/waiting/waiters.py:_watch": "one request that waits",
    "kernel/postgres/embedded.py:_end_leftovers": "ends with the processes",
    "kernel/postgres/embedded.py:_wait_until_ready": "a start, with a time limit",
    "kernel/postgres/group_commit.py:_run": "ends when nobody waits; failures are the callers'",
    "kernel/postgres/group_commit.py:drain": "ends when nobody waits",
    "kernel/postgres/migrations.py:wait_for_lock": "a start; says once whom it waits for",
    "kernel/process/children.py:polled": "ends with the child",
    "kernel/process/database_start.py:connect_patiently": "a start, with a time limit",
    "kernel/process/supervisor.py:_keep_postgres": "doubles its pause itself",
    "kernel/process/workers.py:keep": "doubles its pause itself",
    "kernel/security/team_rate.py:take": "one request that waits",
    "kernel/storage/folder.py:_ended": "ends with the write",
    "kernel/work/collectors.py:in_batches": "batches of one run of a periodic job",
    "kernel/work/engine_loop.py:idle": "ends when nothing runs",
    "mail/smtp/listener.py:_accept": "passes over what it cannot accept; `mail` logs nothing",
    "mail/smtp/listener.py:_sweep": "works in memory alone",
    "people/passwords.py:_place": "one request that waits",
    "receiving/retention.py:_purge": "batches of one run of a periodic job",
    "personal_data/commands/people.py:_erase": "a command",
    "webhooks/commands.py:forever": "a command",
}
"""Functions whose loop pauses and is no background loop that can fail, each with its reason."""

PAUSES = frozenset({"sleep", "wait"})


def pausing(tree: ast.AST) -> Iterator[tuple[str, ast.While]]:
    """The loops that await a pause, with the name of their function."""
    for function in ast.walk(tree):
        if isinstance(function, ast.AsyncFunctionDef):
            for loop in ast.walk(function):
                if isinstance(loop, ast.While) and any(_pauses(node) for node in ast.walk(loop)):
                    yield function.name, loop


def _pauses(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Await) and isinstance(node.value, ast.Call)):
        return False
    called = node.value.func
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in PAUSES


def uses_failures(loop: ast.While) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("attempt", "failed", "pause")
        and "failures" in ast.unparse(node.value)
        for node in ast.walk(loop)
    )


def found() -> dict[str, bool]:
    """Each function with such a loop, and whether all of its loops use `LoopFailures`."""
    loops: dict[str, bool] = {}
    for path in SOURCE.rglob("*.py"):
        for name, loop in pausing(ast.parse(path.read_text())):
            place = f"{path.relative_to(SOURCE).as_posix()}:{name}"
            loops[place] = loops.get(place, True) and uses_failures(loop)
    return loops


def test_every_background_loop_uses_loop_failures() -> None:
    bare = {place for place, uses in found().items() if not uses}
    assert bare - OTHERS.keys() == set(), "use LoopFailures, or give the reason in OTHERS"
    assert OTHERS.keys() - bare == set(), "these are gone, or use LoopFailures by now"


@pytest.mark.parametrize(
    ("body", "uses"),
    [
        ("await self.look()\n        await asyncio.sleep(1)", False),
        ("await failures.attempt(self.look())\n        await clock.sleep(max(1, failures.pause))", True),
        ("await failures.attempt(self.look())\n        await self._wake.wait()", True),
    ],
)
def test_the_rule_sees_a_loop_without_it(body: str, *, uses: bool) -> None:
    tree = ast.parse(f"async def run(self):\n    while True:\n        {body}\n")
    assert [uses_failures(loop) for _, loop in pausing(tree)] == [uses]
