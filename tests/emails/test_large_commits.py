"""Commits that are so large that their rows are copied (docs/decisions/0118)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kit.manual_world import manual_world
from kit.world import Team, mail
from pillarbox.emails.large_commits import LARGE

ONE = {"to": ["ada@quay.example"]}
MAILS: list[dict[str, Any]] = [
    ONE,
    {**ONE, "html": None, "text": "Ready, “Ada” \\ \ttab"},
    {**ONE, "text": "Ready", "headers": {"X-Berth": "12"}, "tags": [{"name": "dock", "value": "north"}]},
    {**ONE, "reply_to": ['Harbor "Master" <master@harbor.example>', "desk@harbor.example"]},
    {
        "to": ["Ada <ada@quay.example>", "bo@pier.example"],
        "cc": ["cy@quay.example"],
        "bcc": ["di@mole.example"],
    },
    {**ONE, "scheduled_at": "in 2 hours"},
]

# Everything but ids and instants, which are those of each email.
ROWS = {
    "emails": """
        SELECT to_jsonb(r) - ARRAY['id', 'content_id', 'message_id', 'created_at', 'last_event_at'] AS row,
               r.to_list::text, r.cc_list::text, r.bcc_list::text, r.reply_to_list::text, r.tags::text,
               r.content_id = r.id AND r.last_event_at = r.created_at AS is_one
          FROM emails r WHERE team_id = $1 AND id = $2
    """,
    "contents": """
        SELECT to_jsonb(r) - ARRAY['id', 'created_at'] AS row, r.headers::text, e.created_at = r.created_at
          FROM contents r JOIN emails e USING (team_id, id) WHERE team_id = $1 AND id = $2
    """,
    "recipients": """
        SELECT to_jsonb(r) - ARRAY['email_id'] AS row
          FROM recipients r WHERE team_id = $1 AND email_id = $2 ORDER BY position
    """,
    "deliveries": """
        SELECT to_jsonb(r) - '{email_id, due_at, leased_until, created_at, first_attempt_at}'::text[] AS row,
               CASE WHEN scheduled_at IS NULL THEN r.due_at >= r.created_at ELSE r.due_at = scheduled_at END,
               r.leased_until IS NULL, r.first_attempt_at = r.created_at, r.created_at = e.created_at
          FROM deliveries r JOIN emails e ON e.team_id = r.team_id AND e.id = r.email_id
         WHERE r.team_id = $1 AND r.email_id = $2 ORDER BY grp
    """,
    "timeline": """
        SELECT to_jsonb(r) - ARRAY['id', 'email_id', 'at'] AS row, r.at = e.created_at
          FROM timeline r JOIN emails e ON e.team_id = r.team_id AND e.id = r.email_id
         WHERE r.team_id = $1 AND r.email_id = $2
    """,
}


async def stored(team: Team, email_id: str) -> dict[str, list[Any]]:
    pool, team_id = team.world.pool, team.db.team_id
    found = {}
    for table, select in ROWS.items():
        rows = await pool.fetch(select, team_id, email_id)
        found[table] = [(json.loads(row["row"]), *list(row.values())[1:]) for row in rows]
    return found


async def accepted(team: Team, items: list[dict[str, Any]]) -> list[str]:
    answer = await team.post("/emails/batch", items)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["data"]]


async def test_what_is_copied_is_what_a_statement_writes(database_url: str, tmp_path: Path) -> None:
    """Each kind of mail leaves the same rows in a large commit as in a small one."""
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        topic = json.loads(
            (await team.post("/topics", {"name": "Tides", "default_subscription": "opt_in"})).text
        )
        kinds = [*MAILS, {**ONE, "topic_id": topic["id"]}]
        items = [mail(**kinds[at % len(kinds)]) for at in range(LARGE)]
        few = await accepted(team, items[: len(kinds)])
        many = await accepted(team, items)
        assert len(set(many)) == LARGE
        for at, email_id in enumerate(many):
            assert await stored(team, email_id) == await stored(team, few[at % len(kinds)])
        assert [(await team.kinds(email_id))[0] for email_id in many[: len(kinds)]] == [
            "scheduled" if "scheduled_at" in kind else "queued" for kind in kinds
        ]


async def test_the_metrics_and_the_log_of_a_large_commit(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        await accepted(team, [mail()] * LARGE)
        received = await team.db.value("SELECT sum(received) FROM metric_increments WHERE team_id = $1")
        assert received == LARGE
        logged = await team.db.value("SELECT count(*) FROM logs WHERE team_id = $1")
        assert logged == 1
