"""Filters of the list of received emails, over the API and on its screen (receiving.md section 2)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from kit.people import a_person, logged_in
from kit.world import Team, World
from pillarbox.kernel.ids import first_id
from pillarbox.receiving.list_filters import MOST_READ

ONE = """
    INSERT INTO received_emails (team_id, id, created_at, sender, to_list, subject, message_id, received_for,
                                 attachments, recipients, mail_from, client, spf, dkim, dmarc, size, complete)
    SELECT $1, (to_jsonb($2::uuid[]) ->> i)::uuid, $3, $4, '[]', $5, '<' || i || '@quay.example>', $6::json,
           0, '[]', '', '127.0.0.1', 'none', 'none', 'none', 1, true
      FROM generate_series(0, cardinality($2::uuid[]) - 1) AS i
"""


async def arrived(team: Team, at: datetime, sender: str, subject: str, to: str, *, count: int = 1) -> None:
    """Store received emails, as rows: each id says when it came."""
    first = first_id(at).int
    ids = [UUID(int=first + number) for number in range(count)]
    await team.world.pool.execute(ONE, team.id, ids, at, sender, subject, f'["{to}"]')


async def harbor(pillarbox: World) -> tuple[Team, datetime]:
    team, now = await pillarbox.team(), pillarbox.clock.now()
    await arrived(
        team, now - timedelta(days=3), "Ada Quay <ada@quay.example>", "Berth 12?", "help@harbor.example"
    )
    await arrived(team, now - timedelta(days=2), "ben@pier.example", "BERTH and crane", "Desk@harbor.example")
    await arrived(team, now - timedelta(days=1), "ada@pier.example", "Crane", "help@dock.example")
    return team, now


async def subjects(team: Team, **filters: str) -> list[str]:
    answer = await team.http.get("/emails/receiving", params=filters)
    assert answer.status_code == 200, answer.text
    return [email["subject"] for email in answer.json()["data"]]


async def test_each_filter_and_several_together(pillarbox: World) -> None:
    team, now = await harbor(pillarbox)
    two_days = (now - timedelta(days=2, hours=1)).isoformat()
    for filters, expected in (
        ({"from": "ADA"}, ["Crane", "Berth 12?"]),
        ({"from": "quay.example"}, ["Berth 12?"]),
        ({"to": "desk@harbor.example"}, ["BERTH and crane"]),
        ({"to": "@harbor.example"}, ["BERTH and crane", "Berth 12?"]),
        ({"to": "%"}, []),
        ({"subject": "crane berth"}, ["BERTH and crane"]),
        ({"since": two_days}, ["Crane", "BERTH and crane"]),
        ({"until": two_days}, ["Berth 12?"]),
        ({"from": "ada", "subject": "crane", "to": "help@dock.example"}, ["Crane"]),
        ({"from": "nobody"}, []),
    ):
        assert await subjects(team, **filters) == expected, filters
    other = await pillarbox.team("Other")
    assert await subjects(other, **{"from": "ada"}) == []


@pytest.mark.parametrize(
    "query",
    [
        {"since": "soon"},
        {"from": "x" * 1001},
        {"from": "a", "message_id": "<b@c>"},
        {"to": "a", "before": str(UUID(int=1))},
    ],
)
async def test_what_means_nothing_is_refused(pillarbox: World, query: dict[str, str]) -> None:
    team = await pillarbox.team()
    assert (await team.http.get("/emails/receiving", params=query)).status_code == 422


async def test_a_page_reads_so_much_and_the_next_one_goes_on(pillarbox: World) -> None:
    """Two emails that fit, with more between them than a page compares."""
    team, now = await pillarbox.team(), pillarbox.clock.now()
    await arrived(team, now - timedelta(days=3), "ada@quay.example", "Oldest", "help@harbor.example")
    await arrived(
        team, now - timedelta(days=2), "ben@pier.example", "Other", "help@harbor.example", count=MOST_READ
    )
    await arrived(team, now - timedelta(days=1), "ada@quay.example", "Newest", "help@harbor.example")
    found, pages, after = [], 0, None
    while pages < 4:
        query: dict[str, Any] = {"from": "ada", "limit": 1} | ({"after": after} if after else {})
        page = (await team.http.get("/emails/receiving", params=query)).json()
        found += [email["subject"] for email in page["data"]]
        pages += 1
        assert page["has_more"] is ("next" in page)
        if not page["has_more"]:
            break
        after = page["next"]
    assert (found, pages) == (["Newest", "Oldest"], 2)


async def test_the_screen_filters_by_what_stands_in_its_address(pillarbox: World) -> None:
    team, _ = await harbor(pillarbox)
    visit = await logged_in(pillarbox, await a_person(team, "ada@harbor.example"))
    page = await visit.get("/dashboard/emails/receiving?sender=ada&to=harbor.example")
    assert "Berth 12?" in page.text
    assert "Crane" not in page.text
    assert 'value="ada"' in page.text
    assert "No email fits" in (await visit.get("/dashboard/emails/receiving?subject=nothing")).text
    assert (await visit.get("/dashboard/emails/receiving?since=soon")).status_code == 422
