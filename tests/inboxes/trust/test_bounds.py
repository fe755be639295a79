"""What trust reads of the database, and keeps in memory, has bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from kit.query_plans import plan, rows_read
from pillarbox.inboxes.trust import known_senders, queries
from pillarbox.inboxes.trust.known_senders import KnownSenders
from pillarbox.inboxes.trust.queries import StoredKnowledge
from pillarbox.kernel.postgres.combined_statement import rows_json
from pillarbox.kernel.postgres.database import BY_KEY

TEAM, INBOX, SENDER, NAME = uuid4(), uuid4(), uuid4(), uuid4()

TRUST = """
    INSERT INTO message_trust (team_id, email_id, inbox_id, level, reasons, sender_key, name_key, domain)
    SELECT $1, gen_random_uuid(), $2, 'known', '[]', $3, $4, 'customer.example' FROM generate_series(1, 3000)
"""
MESSAGES = """
    INSERT INTO inbox_messages (team_id, inbox_id, id, thread_id, direction, received_at, sender, sender_key,
                                to_list, message_id, message_key, attachments, is_read, is_automatic,
                                searched)
    SELECT $1, $2, gen_random_uuid(), gen_random_uuid(), 'inbound', now(), 'a', 'a', '[]', '<a@b>', 7, 0,
           false, false, ''
      FROM generate_series(1, 3000)
"""


async def test_a_sender_with_many_messages_costs_what_one_with_few_does(database_url: str) -> None:
    conn = await asyncpg.connect(database_url, server_settings=BY_KEY)
    try:
        await conn.execute("SET session_replication_role = replica")
        await conn.execute(TRUST, TEAM, INBOX, SENDER, NAME)
        await conn.execute(MESSAGES, TEAM, INBOX)
        await conn.execute("ANALYZE message_trust, inbox_messages")
        asked = {
            "place": 0,
            "team_id": TEAM,
            "inbox_id": INBOX,
            "address": "iris@customer.example",
            "sender_key": SENDER,
            "name_key": NAME,
            "earlier_keys": [7],
        }
        done = await plan(conn, queries.FACTS, (rows_json([asked]), queries.MOST_SAME, queries.MOST_NAMED))
    finally:
        await conn.close()
    assert max(rows_read(done)) <= max(queries.MOST_SAME, queries.MOST_NAMED)


async def test_knowledge_of_many_teams_is_held_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[UUID] = []

    async def knowledge(_: object, teams: set[UUID]) -> dict[UUID, StoredKnowledge]:
        asked.extend(teams)
        return {
            team: StoredKnowledge(["harbor.example"], (), [f"a{n}.test" for n in range(5)]) for team in teams
        }

    monkeypatch.setattr(queries, "knowledge", knowledge)
    monkeypatch.setattr(known_senders, "MOST_HELD", 30)
    held, now = KnownSenders(), datetime(2026, 1, 1, tzinfo=UTC)
    teams = [uuid4() for _ in range(5)]
    for team in teams:
        await held.read(None, now, {team})  # type: ignore[arg-type]
    await held.read(None, now, set(teams[-3:]))  # type: ignore[arg-type]
    assert asked == teams
    await held.read(None, now, {teams[0]})  # type: ignore[arg-type]
    await held.read(None, now + timedelta(seconds=61), {teams[4]})  # type: ignore[arg-type]
    assert asked[5:] == [teams[0], teams[4]]
