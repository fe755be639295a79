"""Mail is found by tag, API key, broadcast, source and Message-ID (docs/decisions/0177)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote
from uuid import UUID

import asyncpg
import pytest

from kit.clock import START
from kit.manual_world import clock_of
from kit.people import a_person, logged_in
from kit.query_plans import plan, rows_read
from kit.screens import a_received_email
from kit.world import Team, World
from pillarbox.emails.search import queries
from pillarbox.emails.search.blocks import LATE, SearchBlocks
from pillarbox.emails.search.filters import EmailFilter, NotAFilter
from pillarbox.emails.search.find import find
from pillarbox.emails.search.terms import Terms
from pillarbox.receiving import queries as receiving_queries

BLOCK = 7
KEYS = (UUID(int=0x1), UUID(int=0x2))
BROADCASTS = (UUID(int=0xB1), UUID(int=0xB2))
TAGS = (
    [],
    [("kind", "invoice")],
    [("kind", "receipt"), ("lang", "de")],
    [("lang", "invoice"), ("kind", "berth")],
)
MARKED = """
    UPDATE emails e
       SET tags = k.tags::json, key_id = k.key_id, broadcast_id = k.broadcast_id, source = k.source,
           inbox_id = k.inbox_id
      FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::text[], $6::uuid[])
           AS k (id, tags, key_id, broadcast_id, source, inbox_id)
     WHERE e.id = k.id
"""
FILL_RECEIVED = """
    INSERT INTO received_emails (team_id, id, created_at, sender, to_list, subject, message_id, received_for,
                                 attachments, recipients, mail_from, client, spf, dkim, dmarc, size, complete)
    SELECT $1, (lpad(to_hex(n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, now(),
           'a', '[]', 's',
           CASE WHEN n % 2 = 0 THEN '<same@x.example>' ELSE format('<%s@x.example>', n) END,
           '[]', 0, '[]', '', '', '', '', '', 1, true
      FROM generate_series(1, $2::integer) AS n
"""
ROWS = """
    SELECT e.id, e.message_id, e.tags, e.key_id, e.broadcast_id, e.source, e.subject,
           (SELECT array_agg(r.address) FROM recipients r WHERE r.email_id = e.id) AS addresses
      FROM complete_emails e WHERE team_id = $1 ORDER BY id DESC
"""
ASKED: Sequence[dict[str, Any]] = (
    {"tag": "kind"},
    {"tag": "kind:invoice"},
    {"tag": "lang:invoice"},
    {"tag": "lang"},
    {"tag": "kind:none"},
    {"tag": "none"},
    {"key_id": str(KEYS[0])},
    {"key_id": str(UUID(int=9))},
    {"broadcast_id": str(BROADCASTS[1])},
    {"broadcast_id": str(KEYS[1])},
    *({"source": source} for source in ("api", "smtp", "broadcast", "automation", "inbox")),
    {"tag": "kind:receipt", "source": "api"},
    {"tag": "kind", "to": "ann1@quay.example"},
    {"source": "smtp", "to": "@quay.example", "key_id": str(KEYS[0])},
    {"source": "broadcast", "tag": "lang", "broadcast_id": str(BROADCASTS[0])},
    {"source": "api", "subject": "ferry", "key_id": str(KEYS[1])},
    {"tag": "kind", "state": "queued"},
)


async def filled(pillarbox: World) -> Team:
    """Mail of every origin, marked in its rows."""
    team = await pillarbox.team("Harbor")
    await team.domain("harbor.example")
    for number in range(40):
        await team.send(
            from_="news@harbor.example",
            to=[f"ann{number % 4}@quay.example"],
            subject=f"Ferry {number}" if number % 2 else f"Berth {number}",
        )
    ids = [row["id"] for row in await pillarbox.pool.fetch("SELECT id FROM emails ORDER BY id")]
    tags = [json.dumps([{"name": n, "value": v} for n, v in TAGS[i % 4]]) for i in range(40)]
    await pillarbox.pool.execute(
        MARKED,
        ids,
        [text if text != "[]" else None for text in tags],
        [KEYS[i % 2] if i % 3 else None for i in range(40)],
        [BROADCASTS[i % 4 // 2] if i % 5 == 0 else None for i in range(40)],
        [{1: "smtp", 2: "automation"}.get(i % 7) for i in range(40)],
        [UUID(int=7) if i % 7 == 3 else None for i in range(40)],
    )
    await pillarbox.pool.execute(
        "INSERT INTO search_blocks (team_id, after_id, last_id, emails, bits, version)"
        " SELECT team_id, '00000000-0000-0000-0000-000000000000', id, 1, '\\x00', 2"
        "   FROM emails ORDER BY id LIMIT 1"
    )
    return team


async def described(pillarbox: World) -> None:
    clock_of(pillarbox).advance(LATE.total_seconds() + 1)
    await SearchBlocks(pillarbox.pool, pillarbox.clock, BLOCK).keep_up()
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM search_blocks WHERE version < 3") == 0


def fits(row: Any, asked: dict[str, Any]) -> bool:
    """What each question means, said once more and without any index."""
    name, _, value = asked.get("tag", "").partition(":")
    tags = json.loads(row["tags"] or "[]")
    tagged = [tag for tag in tags if tag["name"] == name and value in ("", tag["value"])]
    return (
        ("tag" not in asked or bool(tagged))
        and asked.get("key_id", str(row["key_id"])) == str(row["key_id"])
        and asked.get("broadcast_id", str(row["broadcast_id"])) == str(row["broadcast_id"])
        and asked.get("source", row["source"]) == row["source"]
        and asked.get("subject", "") in row["subject"].lower()
        and any(address.endswith(asked.get("to", "")) for address in row["addresses"])
    )


async def all_pages(pillarbox: World, team: Team, asked: dict[str, Any], limit: int) -> list[UUID]:
    found: list[UUID] = []
    cursor = None
    while True:
        page = await find(pillarbox.pool, team.id, EmailFilter.parsed(**asked), limit=limit, after=cursor)
        found += [email.id for email in page.emails]
        if page.following is None:
            return found
        cursor = page.following


@pytest.mark.parametrize("limit", [1, 5, 100])
@pytest.mark.parametrize("has_blocks", [False, True])
async def test_every_filter_finds_exactly_what_fits(
    pillarbox: World, limit: int, *, has_blocks: bool
) -> None:
    team = await filled(pillarbox)
    if has_blocks:
        await described(pillarbox)
    rows = await pillarbox.pool.fetch(ROWS, team.id)
    wrong = {}
    for asked in ASKED:
        expected = [row["id"] for row in rows if fits(row, asked)]
        if await all_pages(pillarbox, team, asked, limit) != expected:
            wrong[str(asked)] = expected
    assert wrong == {}


@pytest.mark.parametrize("has_blocks", [False, True])
async def test_an_email_is_found_by_its_message_id(pillarbox: World, *, has_blocks: bool) -> None:
    """Copies of broadcasts too, whose Message-ID is not stored."""
    team = await filled(pillarbox)
    if has_blocks:
        await described(pillarbox)
    for row in await pillarbox.pool.fetch(ROWS, team.id):
        for text in (row["message_id"], row["message_id"].strip("<>").upper()):
            assert await all_pages(pillarbox, team, {"message_id": text}, 10) == [row["id"]]
    assert await all_pages(pillarbox, team, {"message_id": "<none@harbor.example>"}, 10) == []
    other = await pillarbox.team("Quay")
    assert await all_pages(pillarbox, other, {"message_id": row["message_id"]}, 10) == []


async def test_few_blocks_seem_to_have_an_origin_that_they_have_not(pillarbox: World) -> None:
    """So a search reads the blocks that have what it looks for, and no others."""
    team = await pillarbox.team()
    terms = Terms()
    for number in range(400):
        terms.add("news@harbor.example", "harbor.example", f"No. {number}", [f"ann{number}@quay.example"])
        tags = json.dumps([{"name": "kind", "value": f"v{number}"}])
        terms.add_origin("api", f"<{number}@harbor.example>", tags, KEYS[0], BROADCASTS[0])
    await queries.add_block(team.db, UUID(int=0), UUID(int=9), 400, terms.bloom_filter(0))

    async def has(**asked: Any) -> bool:
        numbers = EmailFilter.parsed(**asked).numbers
        found, _ = await queries.blocks(pillarbox.pool, team.id, UUID(int=99), UUID(int=1), numbers, 5)
        return bool(found)

    assert await has(source="api", tag="kind:v7", key_id=str(KEYS[0]), broadcast_id=str(BROADCASTS[0]))
    assert await has(message_id="7@harbor.example", tag="kind")
    seeming = [await has(tag=f"kind:w{number}") for number in range(100)]
    seeming += [await has(message_id=f"w{number}@harbor.example") for number in range(100)]
    seeming += [await has(source=source) for source in ("smtp", "broadcast", "automation", "inbox")]
    seeming += [await has(key_id=str(KEYS[1])), await has(broadcast_id=str(BROADCASTS[1]))]
    assert sum(seeming) < 8


@pytest.mark.parametrize(
    "asked",
    [
        {"tag": ""},
        {"tag": "a b"},
        {"tag": "a:b:c"},
        {"tag": "a\0"},
        {"key_id": "1"},
        {"broadcast_id": "x" * 36},
        {"source": "fax"},
        {"message_id": "no id"},
        {"message_id": "<a@b> <c@d>"},
        {"since": START, "until": START},
    ],
)
def test_what_cannot_be_looked_for_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(NotAFilter):
        EmailFilter.parsed(**asked)


async def test_the_list_of_the_api_takes_filters(pillarbox: World) -> None:
    team = await filled(pillarbox)
    rows = await pillarbox.pool.fetch(ROWS, team.id)
    expected = [str(row["id"]) for row in rows if fits(row, {"tag": "kind:invoice"})]
    found: list[str] = []
    after = ""
    while True:
        page = (await team.get(f"/emails?tag=kind:invoice&limit=3{after}")).json()
        found += [email["id"] for email in page["data"]]
        assert page["has_more"] == ("next" in page)
        if not page["has_more"]:
            break
        after = f"&after={page['next']}"
    assert found == expected
    whole = (await team.get("/emails?limit=3")).json()
    assert list(whole) == ["object", "has_more", "data"]
    [first] = (await team.get(f"/emails?message_id={rows[1]['message_id'].strip('<>')}")).json()["data"]
    assert list(first) == list(whole["data"][0])
    for query in ("tag=a b", "source=fax", "api_key_id=7", "since=then", f"tag=a&before={expected[0]}"):
        refused = await team.get(f"/emails?{query}")
        assert (refused.status_code, refused.json()["name"]) == (422, "validation_error"), query


async def test_received_mail_is_found_by_its_message_id(pillarbox: World) -> None:
    team, other = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
    first, second = [await a_received_email(team) for _ in range(2)]
    shown = (await team.get(f"/emails/receiving/{first}")).json()["message_id"]
    for text in (shown, shown.strip("<>")):
        found = (await team.get(f"/emails/receiving?message_id={quote(text)}")).json()
        assert [email["id"] for email in found["data"]] == [first]
        assert found["has_more"] is False
    everything = {email["id"]: email for email in (await team.get("/emails/receiving")).json()["data"]}
    assert second in everything
    assert found["data"] == [everything[first]]
    assert (await other.get(f"/emails/receiving?message_id={quote(shown)}")).json()["data"] == []
    refused = await team.get(f"/emails/receiving?message_id={quote(shown)}&before={first}")
    assert refused.status_code == 422


async def test_the_search_finds_sent_and_received_mail_by_message_id(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    await team.domain("harbor.example")
    ada = await logged_in(pillarbox, await a_person(team, "ada@search.example"))
    received, sent = await a_received_email(team), await team.send(subject="Sent one")
    for path, email_id in (("/emails/receiving", received), ("/emails", sent)):
        shown = (await team.get(f"{path}/{email_id}")).json()["message_id"]
        for text in (shown, shown.strip("<>")):
            page = await ada.get(f"/dashboard/search?q={quote(text)}")
            assert f'href="/dashboard{path}/{email_id}"' in page.text
    assert (await ada.get("/dashboard/search?q=%3Cnone@x.example%3E")).status_code == 200


async def test_received_mail_is_looked_up_by_its_index(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    try:
        await conn.execute(FILL_RECEIVED, UUID(int=1), 20_000)
        await conn.execute("VACUUM ANALYZE received_emails")
        for mode in ("force_custom_plan", "force_generic_plan"):
            await conn.execute(f"SET plan_cache_mode = {mode}")
            for text in ("<777@x.example>", "<same@x.example>", "<none@x.example>"):
                args = (UUID(int=1), text, UUID(int=2**128 - 1), 11)
                assert max(rows_read(await plan(conn, receiving_queries.BY_MESSAGE_ID, args))) <= 11
    finally:
        await conn.close()
