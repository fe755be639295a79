"""Counts by column: what is added up, how rates are rounded, and how many rollups are read as they are."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from uuid import UUID

from kit.clock import ManualClock
from kit.histories import instant
from kit.manual_world import manual_world
from pillarbox.kernel.http.request import encode
from pillarbox.metrics.definitions import COLUMNS, shown
from pillarbox.metrics.read import MOST_PLAIN
from pillarbox.metrics.table import NOTHING, MetricKey, of_rows, of_texts

NOW = instant("2026-11-21T10:07:33.123456")

# A rollup for each of so many broadcasts of one day, each with one email accepted.
BROADCASTS = """
    INSERT INTO rollups
    SELECT $1, 3, $2, md5('harbor')::uuid, 'harbor.example', md5('news' || n)::uuid, 1,
           0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
      FROM generate_series(1, $3::int) AS n
"""


def rates(delivered: int, sent: int) -> bytes:
    counts = dict.fromkeys(COLUMNS, 0) | {"sent": sent, "delivered": delivered}
    return encode(shown(["delivery_rate"], [[counts[name]] for name in COLUMNS])[0])


def test_rates_are_rounded_half_up_from_the_exact_fraction() -> None:
    assert rates(1, 3) == b"[33.33]"
    assert rates(2, 3) == b"[66.67]"
    assert rates(1, 800) == b"[0.13]"
    assert rates(1, 20000) == b"[0.01]"
    assert rates(1, 20001) == b"[0.0]"
    assert rates(3, 3) == b"[100.0]"
    assert rates(7, 0) == b"[0.0]"
    assert rates(10**18 + 1, 10**18) == b"[100.0]"


def test_a_rate_may_be_more_than_a_hundred_percent() -> None:
    """metrics.md 4: what was sent yesterday may be delivered today."""
    assert rates(4, 3) == b"[133.33]"
    assert rates(10**6, 1) == b"[100000000.0]"


def test_what_is_said_twice_of_one_combination_is_added_up() -> None:
    def text(first: int) -> str:
        return ",".join(map(str, (first, *NOTHING[1:])))

    ids = UUID(int=2).bytes + UUID(int=1).bytes
    names = "quay.example\npier.example"
    table = of_texts(
        [
            (1, ids, names, None, f"{text(5)},{text(6)}"),
            (0, ids, names, None, f"{text(1)},{text(2)}"),
            (1, ids[:16], "quay.example", None, text(10)),
        ]
    )
    found = {(period, key.domain_name): counts[0] for period, key, counts in table.rows()}
    assert found == {
        (0, "quay.example"): 1,
        (0, "pier.example"): 2,
        (1, "quay.example"): 15,
        (1, "pier.example"): 6,
    }
    ordered = [(table.periods[place], table.keys[place].domain_name) for place in table.order]
    assert ordered == [(period, name) for period in (0, 1) for name in ("pier.example", "quay.example")]


def test_emails_stand_newest_first() -> None:
    keys = [MetricKey("a.example", None, None, f"0199a3b0-0000-7000-8000-00000000000{n}") for n in (2, 3, 1)]
    table = of_rows((0, key, NOTHING) for key in keys)
    assert [(table.keys[place].email_id or "")[-1] for place in table.order] == ["3", "2", "1"]


async def test_a_day_with_very_many_broadcasts_counts_them_all(database_url: str, tmp_path: Path) -> None:
    """More rollups than are read as they are; the database adds them up."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        day = NOW.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=3)
        broadcasts = MOST_PLAIN // 2 + 10
        await pillarbox.pool.execute(BROADCASTS, team.id, day, broadcasts)
        answer = await team.http.get(
            "/emails/metrics",
            params={
                "start_date": f"{day.date()}",
                "end_date": f"{(day + timedelta(days=1)).date()}",
                "dimensions": "period,domain",
                "metrics": "received",
            },
        )
        assert [(row["period"], row["received"]) for row in answer.json()["data"]] == [
            (f"{day.date()}", broadcasts)
        ]
