"""What strangers might write, in every column of the schema that can hold it, and what a page makes of it.

The columns are read from the database, so a new one is filled by itself. `OURS` names those whose values the
program chooses.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, Final

import asyncpg

from kit.world import Team

MARK: Final = re.compile(r"hx_[a-z0-9_]+_hx")
LONG: Final = 2000
MARKUP: Final = (
    "\"'`></title></textarea></script></pre></bdi></option><hxe hxa=1 onhx=alert(1)>"
    "javascript:alert(1) {{7191*7}} ${7191*7} \u202e\u2066&quot;&lt; $(touch /x) `id` \\\r\n--"
)
COMPUTED: Final = re.compile(rf"\b{7191 * 7}\b")
"""What a template engine would make of the marks in `MARKUP`; an id may have these digits by chance."""

VALUES: Final = (f"{MARKUP}{'W' * LONG}", MARKUP, "\"'><hxe hxa=1>")
"""What is written behind the mark, the longest that the column takes."""

LINKS: Final = frozenset(
    {"webhooks.endpoint", "oauth_clients.client_uri", "oauth_clients.logo_uri", "attachments.url"}
)
"""Columns that are links: their values begin with `javascript:`."""

OURS: Final = frozenset(
    """
    status kind type role permission origin visibility default_subscription subscription on_conflict
    algorithm tls mode signal direction folder last_event source state bounce_type method stage purpose
    ways what blocked_reason failure_reason revoked_reason paused_for failed_for skipped_for actions
    token_endpoint_auth_method email_key name_key sender_key mailbox address_key blob token challenge
    password transports trigger_key region columns segments topics checkpoint variables steps connections
    link_places spf dkim dmarc encoding key fingerprint roles route scopes grant_types
    """.split()  # noqa: SIM905 (prose reads better as prose)
)
"""Names of columns whose values are the program's own words, secrets, or keys by which rows are found."""

OUR_TABLES: Final = frozenset(
    """
    directory_keys directory_domains directory_inboxes idempotency_keys key_ring_keys link_keys jobs
    person_challenges person_recovery_codes person_links oauth_keys oauth_codes oauth_refresh_tokens
    oauth_requests oauth_documents oauth_logos schema_migrations search_blocks inbox_search_blocks
    inbox_search_rows metric_pieces sealed_mails contact_import_errors_done
    """.split()  # noqa: SIM905 (prose reads better as prose)
)
OUR_COLUMNS: Final = frozenset(
    {
        *("examinations.result", "dkim_keys.selector", "dkim_keys.public_key", "emails.domain_name"),
        *("segments.conditions", "contact_bulk_acts.conditions", "contact_bulk_acts.reason"),
        "link_checks.reason",
    }
)

ADDRESSES: Final = frozenset({"address", "email", "actor", "mail_from", "email_address"})
"""Names of columns that hold a mail address."""

OUR_KEYS: Final = frozenset(
    """
    status type kind result state outcome record role id timestamp bounce next_attempt_at winner_by topic_ids
    segment_id template_id
    """.split()  # noqa: SIM905 (prose reads better as prose)
)
"""Names of values in JSON that the program chooses."""

COLUMNS: Final = """
    SELECT table_name AS "table", column_name AS "column", data_type,
           EXISTS (SELECT FROM information_schema.columns AS t
                    WHERE t.table_schema = 'public' AND t.table_name = c.table_name
                      AND t.column_name = 'team_id') AS is_of_team
      FROM information_schema.columns AS c
      JOIN information_schema.tables USING (table_schema, table_name)
     WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND is_generated = 'NEVER'
       AND (data_type IN ('text', 'json', 'jsonb') OR udt_name = '_text')
     ORDER BY table_name, column_name
"""


def mark_of(table: str, column: str) -> str:
    return f"hx_{table}__{column}_hx"


@dataclass(frozen=True, slots=True)
class Written:
    """The columns that were filled, and those that had a row and took no value."""

    filled: set[str]
    refused: set[str]


async def write_everywhere(team: Team) -> Written:
    """Put hostile values into every row of the team, and of what belongs to no team."""
    written = Written(set(), set())
    async with team.world.pool.acquire() as conn, conn.transaction():
        # Without triggers: some tables refuse changes.
        await conn.execute("SET LOCAL session_replication_role = replica")
        for found in await conn.fetch(COLUMNS):
            table, column = found["table"], found["column"]
            name = f"{table}.{column}"
            if table in OUR_TABLES or column in OURS or name in OUR_COLUMNS:
                continue
            scope = f"team_id = '{team.id}'" if found["is_of_team"] else "true"
            if not await conn.fetchval(f'SELECT count(*) FROM "{table}" WHERE {scope}'):
                continue
            write = write_json if found["data_type"].startswith("json") else write_text
            is_written = await write(conn, table, column, scope, found["data_type"])
            (written.filled if is_written else written.refused).add(name)
    return written


async def write_text(conn: Any, table: str, column: str, scope: str, data_type: str) -> bool:
    value = "$1 || substr(md5(random()::text), 1, 6) || $2"
    value = f"ARRAY[{value}]" if data_type == "ARRAY" else value
    begins = "javascript:alert(1)//" if f"{table}.{column}" in LINKS else ""
    is_address = column in ADDRESSES
    ends = "@quay.example" if is_address else ""
    for text in VALUES[1:] if is_address else VALUES:
        try:
            async with conn.transaction():
                await conn.execute(
                    f'UPDATE "{table}" SET "{column}" = {value} WHERE {scope}',
                    begins + mark_of(table, column) + text,
                    ends,
                )
        except asyncpg.PostgresError:
            continue
        return True
    return False


async def write_json(conn: Any, table: str, column: str, scope: str, data_type: str) -> bool:
    is_written = False
    for row in await conn.fetch(
        f'SELECT ctid::text AS place, "{column}"::text AS was FROM "{table}" WHERE {scope}'
    ):
        if row["was"] is None:
            continue
        value = poisoned(json.loads(row["was"]), mark_of(table, column))
        try:
            async with conn.transaction():
                await conn.execute(
                    f'UPDATE "{table}" SET "{column}" = $1::text::{data_type} WHERE ctid = $2::text::tid',
                    json.dumps(value),
                    row["place"],
                )
        except asyncpg.PostgresError:
            continue
        is_written |= mark_of(table, column) in json.dumps(value)
    return is_written


def poisoned(value: Any, mark: str) -> Any:
    """Return JSON of the same shape with hostile texts in place of those that the program does not choose."""
    match value:
        case str():
            return f"{mark}{VALUES[0]}{secrets.token_hex(2)}"
        case list():
            return [poisoned(entry, mark) for entry in value]
        case dict():
            return {
                key: entry if key in OUR_KEYS and isinstance(entry, (str, list)) else poisoned(entry, mark)
                for key, entry in value.items()
            }
    return value


@dataclass(slots=True)
class Node:
    """An element that is open, with the texts that stand in it."""

    tag: str
    texts: list[str] = field(default_factory=list)


VOID: Final = frozenset(
    """
    area base br col embed hr img input link meta source track wbr
    """.split()  # noqa: SIM905 (prose reads better as prose)
)
ISOLATED: Final = frozenset({"bdi", "pre", "textarea", "option", "title", "iframe"})
BLOCKS: Final = frozenset(
    """
    body main aside nav section div p td th li dd dt h1 h2 h3 summary details label form figcaption
    caption span-block button article header footer
    """.split()  # noqa: SIM905 (prose reads better as prose)
)
LOADED: Final = frozenset({"href", "src", "action", "formaction", "data", "poster", "srcdoc", "xlink:href"})


FOREIGN_SCHEME: Final = re.compile(
    r"\s*(?!https?:|mailto:|data:image/|data:,)[a-z][a-z0-9+.-]*:", re.IGNORECASE
)


class HostilePage(HTMLParser):
    """What a browser makes of a page: `faults` are what must not be in it, `marks` what strangers wrote."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.marks: set[str] = set()
        self.links: set[str] = set()
        self._open: list[Node] = [Node("html")]
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "hxe" or (
            tag == "script" and not values.get("src", "").startswith(("/assets/", "/scripts/"))
        ):
            self.faults.append(f"<{tag}> {values}"[:300])
        for name, value in values.items():
            self.marks |= set(MARK.findall(value))
            is_style = name == "style" and value != ""
            if name.startswith(("on", "hx")) or is_style or COMPUTED.search(value):
                self.faults.append(f"<{tag} {name}={value[:200]}>")
            if name in LOADED and re.match(
                r"\s*(?!https?:|mailto:|data:image/|data:,)[a-z][a-z0-9+.-]*:", value, re.I
            ):
                self.faults.append(f"<{tag} {name}={value[:200]}>")
        if tag == "a" and values.get("href", "").startswith("/"):
            self.links.add(values["href"])
        if tag == "iframe" and values.get("src", "").startswith("/"):
            self.links.add(values["src"])
        if tag not in VOID:
            self._open.append(Node(tag))

    def handle_endtag(self, tag: str) -> None:
        if tag not in [node.tag for node in self._open]:
            return
        while True:
            node = self._open.pop()
            self._judge(node)
            if node.tag == tag:
                return

    def handle_data(self, data: str) -> None:
        self.marks |= set(MARK.findall(data))
        if COMPUTED.search(data):
            self.faults.append(f"computed: {data[:200]}")
        is_isolated = any(node.tag in ISOLATED for node in self._open)
        for node in reversed(self._open):
            if node.tag in BLOCKS:
                node.texts.append("" if is_isolated else data.strip())
                return

    def _judge(self, node: Node) -> None:
        """Report a mark that turns the writing round and is not alone in its block."""
        texts = [text for text in node.texts if text]
        turning = [text for text in texts if "\u202e" in text]
        if turning and len(texts) > 1:
            self.faults.append(f"turns its neighbours round in <{node.tag}>: {turning[0][:60]!r}")
