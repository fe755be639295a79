"""What pages read goes by an index and is bounded: made from the pages, so a new one is in it by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from dashboard.test_page_rights import asked_of_members, path_in
from kit.many_rows import copy_rows
from kit.people import a_grant, an_operator, logged_in
from kit.screens import newest_inbox, some_contacts, some_domains, some_mail
from kit.statements import all_statements
from kit.world import Team, world
from pillarbox.kernel.postgres.bounded_pool import Stateless

MOST: Final = 650
"""Rows that one scan may read, of the thousand and more that there are: a page of 500, and what is beside."""

FILTERED: Final = (
    "/dashboard?span=90d",
    "/dashboard/emails?state=bounced",
    "/dashboard/emails?to=ada@quay.example",
    "/dashboard/emails?subject=invoice",
    "/dashboard/emails?sender=hello@harbor.example",
    "/dashboard/emails?tag=kind",
    "/dashboard/emails?domain=harbor.example",
    "/dashboard/contacts?search=ada",
    "/dashboard/logs?status=failed",
    "/dashboard/logs?method=POST",
    "/dashboard/suppressions?origin=bounce",
    "/dashboard/suppressions?search=ada",
    "/dashboard/search?q=ada@quay.example",
    "/dashboard/search?q=invoice",
    "/dashboard/metrics?span=30d",
    "/dashboard/personal-data/file?address=ada@quay.example",
    "/dashboard/installation/acts?what=login",
    "/dashboard/inboxes/{inbox_id}?folder=trash",
    "/dashboard/inboxes/{inbox_id}?unread=1",
    "/dashboard/inboxes/{inbox_id}?q=refund",
    "/dashboard/inboxes/{inbox_id}?q=from:iris has:attachment",
    "/dashboard/installation/queue?domain=quay.example",
)
"""Addresses with filters, beside those that are made from the pages."""

NEEDS_MORE: Final = {
    "/dashboard/personal-data/file": "an address, see above",
    "/dashboard/template-gallery/html": "a name of the gallery",
}
"""Pages that answer 404 to an address without a query."""

SMALL: Final = {
    "backups": "one row for each backup that is kept",
    "blob_store": "one row",
    "examinations": "one row for each kind",
    "link_keys": "one row for each change of the key ring",
    "maintenance": "one row at most",
    "paused": "one row for each stop of the operator",
    "processes": "one row for each process of a day",
    "restored": "one row at most",
    "schema_migrations": "one row for each migration",
}
"""Tables that are read from end to end, and why they stay small."""

COUNTED: Final = "a count that the database ends after 0.1 s; the page goes without it"
OF_A_TEAM: Final = "what a team makes by hand, and its settings bound"
QUEUE: Final = "the waiting mail of all teams, which the operator asked for"
BLOCK: Final = "a block of ids, of a fixed number; the next page goes on behind it"
PERIOD: Final = "what was not yet added up, of the period that was asked for"
WHETHER: Final = "whether there is another team: the first row answers it"

WHOLE: Final = {
    "contacts.COUNT": COUNTED,
    "topics.subscribers": COUNTED,
    "contacts.BELOW": BLOCK,
    "contacts.PAGE": BLOCK,
    "contacts.FOLLOWING": BLOCK,
    "emails.BY_EMAIL": BLOCK,
    "emails.BY_RECIPIENT": BLOCK,
    "logs.id_after_rows": BLOCK,
    "people.page_of_all": BLOCK,
    "people.place_behind": BLOCK,
    "automations.STARTED": "the thousand newest runs",
    "broadcasts.BY_COPIES": "the copies of one broadcast, by the ids of its time",
    "broadcasts.DIGEST": PERIOD,
    "broadcasts._sums": PERIOD,
    "metrics.SUMMED": PERIOD,
    "usage.USED": PERIOD,
    "webhooks.DELIVERIES": "the deliveries of the period that was asked for",
    "api_keys.shown_page": OF_A_TEAM,
    "automations.NAMED": OF_A_TEAM,
    "contacts.ALL_CONDITIONS": OF_A_TEAM,
    "contacts.FOUND": OF_A_TEAM,
    "contacts.TOPICS": OF_A_TEAM,
    "domains.overview": OF_A_TEAM,
    "people.MEMBERS": OF_A_TEAM,
    "people.keys_made_by": OF_A_TEAM,
    "people.programs": OF_A_TEAM,
    "delivery.GROUPS": QUEUE,
    "delivery.REASON": QUEUE,
    "delivery.TOTALS": QUEUE,
    "domains.checked": WHETHER,
    "domains.several_teams": WHETHER,
    "suppressions.count": "for the line in the log of acts about a file with all of them",
    "teams.every": "the operator chooses among all teams",
}
"""Statements that read more, and why."""

READS: Final = re.compile(r"[\s(]*(SELECT|WITH)\b")
CHANGES: Final = re.compile(r"\b(INSERT INTO|UPDATE|DELETE FROM)\b")

Statement = tuple[str, tuple[Any, ...]]


async def test_pages_read_by_index_and_no_more_than_they_show(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    heard.listen(monkeypatch)
    async with world(database_url, tmp_path, started=False) as here:
        team = await here.team()
        person = await an_operator(team, "ada@harbor.example")
        browser = await logged_in(here, person)
        paths = await filled(team)
        await a_grant(team, person)
        inbox = (await newest_inbox(team)).id
        assert (await copy_rows(team)).keys() >= {"emails", "contacts", "logs", "people", "audit_entries"}
        heard.is_on = True
        for path in (*paths, *(path.replace("{inbox_id}", str(inbox)) for path in FILTERED)):
            answer = await browser.get(path)
            assert answer.status_code == (404 if path in NEEDS_MORE else 200), (path, answer.text[-500:])
        heard.is_on = False
        found = await costly(database_url, heard.statements)
    assert {name: what for name, what in found.items() if name not in WHOLE} == {}
    assert set(WHOLE) - {name_of(sql) for sql, _ in heard.statements} == set()


class Heard:
    """The statements of all connections, one of each text and set of arguments that are NULL."""

    def __init__(self) -> None:
        self.is_on = False
        self._statements: dict[tuple[str, tuple[bool, ...]], Statement] = {}

    @property
    def statements(self) -> list[Statement]:
        return list(self._statements.values())

    def listen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        begin = Stateless.__init__

        def begun(conn: Stateless, *args: Any, **kwargs: Any) -> None:
            begin(conn, *args, **kwargs)
            conn.add_query_logger(self._note)

        monkeypatch.setattr(Stateless, "__init__", begun)

    def _note(self, asked: Any) -> None:
        if self.is_on and (READS.match(asked.query) or CHANGES.search(asked.query)):
            given = tuple(value is None for value in asked.args)
            self._statements[asked.query, given] = asked.query, asked.args


async def filled(team: Team) -> list[str]:
    """Give the team something of everything; return the address of each page."""
    for fill in (some_domains, some_mail, some_contacts):
        await fill(team)
    return [await path_in(team, route) for route, _ in asked_of_members() if route.method == "GET"]


async def costly(database_url: str, statements: list[Statement]) -> dict[str, str]:
    """Return the statements for which there is no index, or that read too many rows, with what they read."""
    found: dict[str, str] = {}
    conn = await asyncpg.connect(database_url)
    try:
        for sql, args in statements:
            name = name_of(sql)
            await conn.execute("SET enable_seqscan = off")
            for scan in scans(await plan(conn, "FORMAT JSON", sql, args)):
                table = scan["Relation Name"]
                if not by_index(scan) and table not in SMALL:
                    found[name] = f"{scan['Node Type']} of {table} {scan.get('Index Name')}"
            await conn.execute("RESET enable_seqscan")
            if CHANGES.search(sql):
                continue
            for scan in scans(await plan(conn, "ANALYZE, TIMING OFF, FORMAT JSON", sql, args)):
                if rows_of(scan) > MOST:
                    found[name] = f"{rows_of(scan):.0f} rows of {scan['Relation Name']}"
    finally:
        await conn.close()
    return found


@cache
def named_statements() -> list[tuple[str, str]]:
    """Return how each statement begins, up to the place of a filter, and its name; the longest first."""
    known = {(item.sql.partition("/*")[0].strip(), item.where) for item in all_statements()}
    return sorted(known, key=lambda item: (-len(item[0]), item[1]))


def name_of(sql: str) -> str:
    text = sql.strip()
    return next((name for begins, name in named_statements() if text.startswith(begins)), text)


async def plan(conn: asyncpg.Connection, options: str, sql: str, args: tuple[Any, ...]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(await conn.fetchval(f"EXPLAIN ({options}) {sql}", *args))[0]["Plan"]
    return made


def scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the scans of tables in a plan."""
    if node["Node Type"].endswith("Scan") and "Relation Name" in node:
        yield node
    for inner in node.get("Plans", ()):
        yield from scans(inner)


def by_index(scan: dict[str, Any]) -> bool:
    """Return whether the scan goes from keys to rows. Of a bitmap scan its indexes say that."""
    inner = scan.get("Plans", ())
    if scan["Node Type"] == "Bitmap Heap Scan":
        return all(by_index(part) for part in inner)
    if scan["Node Type"] in ("BitmapOr", "BitmapAnd"):
        return all(by_index(part) for part in inner)
    return "Index Cond" in scan or scan["Node Type"] == "Tid Scan"


def rows_of(scan: dict[str, Any]) -> float:
    """Return how many rows the scan has read."""
    return float((scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"])
