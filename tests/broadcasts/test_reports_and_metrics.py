"""The reports, the metrics and the history say the same (metrics.md section 7)."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.mailings import Mailing, a_mailing, bounced, clicked, shown
from kit.world import World, world
from pillarbox.broadcasts.reports import recipients, wire
from pillarbox.broadcasts.reports.invariants import INVARIANTS
from pillarbox.broadcasts.reports.wire import RecipientsAsked
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.kernel.ids import first_id
from pillarbox.kernel.wire.paging import Page
from pillarbox.timeline import rollups
from pillarbox.timeline.rules import EventDetail, EventKind

URLS = [f"https://harbor.example/{name}?to=%2F" for name in ("tides", "berths", "map")]
ASKED = [(kind, None) for kind in wire.TYPES] + [("bounced", name) for name in wire.BOUNCES]
COUNTED = {"opened": "unique_opened", "clicked": "unique_clicked"}
Event = tuple[int, EventKind, datetime, EventDetail | None]


async def lived(pillarbox: World, size: int, seed: int) -> Mailing:
    """A broadcast to so many, each with a random fate: in the first minutes, or over two days. It began so
    lately that there are rollups of ten seconds."""
    chance = random.Random(seed)
    team = await pillarbox.team()
    started = datetime.now(UTC) - timedelta(hours=47)
    made = await a_mailing(team, [f"m{n:04}@orchard.example" for n in range(size)], started=started)
    events: list[Event] = [event for n in range(size) for event in _fate(chance, n, started)]
    for at in range(0, len(events), 500):
        await made.happens(*events[at : at + 500])
    return made


def _fate(chance: random.Random, place: int, started: datetime) -> list[Event]:
    at = started
    events: list[Event] = []

    def then(kind: EventKind, most: float, detail: EventDetail | None = None) -> None:
        nonlocal at
        at += timedelta(seconds=round(chance.uniform(0, most), 1))
        events.append((place, kind, at, detail))

    if chance.random() < 0.05:
        then(EventKind.SUPPRESSED, 300)
        return events
    then(EventKind.SENT, 1200)
    if chance.random() < 0.1:
        then(EventKind.DELIVERY_DELAYED, 60, EventDetail())
        then(EventKind.DELIVERY_DELAYED, 60, EventDetail())
    if chance.random() < 0.1:
        then(EventKind.BOUNCED, 3, bounced(chance.choice(("Permanent", "Transient", "Undetermined"))))
        return events
    then(EventKind.DELIVERED, 1 if chance.random() < 0.9 else 80_000)
    for _ in range(chance.choice((0, 0, 1, 2, 4))):
        if chance.random() < 0.6:
            then(EventKind.OPENED, 20_000)
        else:
            then(EventKind.CLICKED, 20_000, clicked(chance.choice(URLS), at))
    if chance.random() < 0.05:
        then(EventKind.UNSUBSCRIBED, 100)
    if chance.random() < 0.05:
        then(EventKind.COMPLAINED, 100)
    if chance.random() < 0.02:
        then(EventKind.BOUNCED, 1000, bounced("Transient"))
    return events


async def check(made: Mailing) -> None:
    """Every equality of section 7, and every page read by time is the one read from all copies."""
    metrics = await made.metrics()
    for kind, bounce in ASKED:
        params = {"type": kind} | ({} if bounce is None else {"bounce_type": bounce})
        rows = await made.whole(**params)
        name = COUNTED.get(kind, kind) if bounce is None else wire.BOUNCES[bounce]
        assert len(rows) == metrics[name], (kind, bounce)
        assert [row["id"] for row in rows] == [wire.cursor(n) for n in range(len(rows))]
        if kind in COUNTED:
            assert sum(row["count"] for row in rows) == metrics[kind]
        if kind == "clicked":
            for row in rows:
                assert sum(link["clicks"] for link in row["clicked_links"]) == row["count"]
        await same_by_time(made, kind, bounce, rows)
    links = (await made.links())["data"]
    clicked_by = await made.whole(type="clicked")
    assert sum(link["clicks"] for link in links) == metrics["clicked"]
    assert {link["url"]: link["unique_clicks"] for link in links} == {
        url: sum(url in [link["url"] for link in row["clicked_links"]] for row in clicked_by) for url in URLS
    }


async def same_by_time(made: Mailing, kind: str, bounce: str | None, rows: list[dict[str, Any]]) -> None:
    """A large broadcast is read by time; here with pages that begin anywhere."""
    for first in range(0, len(rows) + 1, 37):
        after = None if first == 0 else wire.page_cursor(first - 1)
        asked = RecipientsAsked(kind, None, bounce, Page(20, after=after))
        team = made.team
        found = await recipients.listed(team.world.pool, team.id, made.id, asked, few=0)
        assert shown_rows(found) == [(row["id"], row["email"]) for row in rows[first : first + 20]]
        assert found.has_more == (first + 20 < len(rows) and first < len(rows))


def shown_rows(found: Any) -> list[tuple[str, str]]:
    return [(row.id, row.email) for row in found.data]


@pytest.mark.parametrize("seed", [1, 2])
async def test_reports_metrics_and_history_are_equal(database_url: str, tmp_path: Path, seed: int) -> None:
    """Section 8, last point but one: before increments are folded, after it, and without the rollups of ten
    seconds; while another broadcast and other mail are counted at the same time."""
    async with world(database_url, tmp_path, started=False) as pillarbox:
        made, _ = await lived(pillarbox, 300, seed), await lived(pillarbox, 40, seed + 10)
        await check(made)
        now = pillarbox.clock.now()
        await rollups.fold(pillarbox.pool, now)
        await check(made)
        assert await rollups.thin(pillarbox.pool, now + timedelta(days=3))
        await check(made)


@pytest.mark.slow
async def test_equalities_with_a_thousand_recipients(database_url: str, tmp_path: Path) -> None:
    """Section 8: on a broadcast with 1,000 simulated recipients."""
    async with world(database_url, tmp_path, started=False) as pillarbox:
        await check(await lived(pillarbox, 1000, 7))


async def test_an_event_that_comes_late_stands_where_it_belongs(database_url: str, tmp_path: Path) -> None:
    """Its time is when it happened, not when it was written."""
    async with world(database_url, tmp_path, started=False) as pillarbox:
        team = await pillarbox.team()
        made = await a_mailing(team)
        at = made.started
        await made.happens(*((n, EventKind.SENT, at + timedelta(seconds=n), None) for n in range(3)))
        await made.happens((2, EventKind.OPENED, at + timedelta(hours=1), None))
        await rollups.fold(pillarbox.pool, pillarbox.clock.now())
        await made.happens((1, EventKind.OPENED, at + timedelta(minutes=5), None))
        assert shown((await made.report(type="opened"))["data"]) == [
            "bo@orchard.example",
            "cy@orchard.example",
        ]
        await same_by_time(made, "opened", None, (await made.report(type="opened"))["data"])


async def test_metrics_name_broadcasts(database_url: str, tmp_path: Path) -> None:
    """By name and then by id, unnamed ones first; a new name shows at once also in what was asked for
    before."""
    async with world(database_url, tmp_path, started=False) as pillarbox:
        team = await pillarbox.team()
        stranger = await pillarbox.team("Quay")
        begun = pillarbox.clock.now() - timedelta(days=3)
        tides, berths, unnamed = [
            await a_mailing(team, [f"{n}@orchard.example"], started=begun, name=name)
            for n, name in enumerate(("Tides", "Berths", None))
        ]
        await a_mailing(stranger, ["x@orchard.example"], started=begun, name="Foreign")
        await rollups.fold(pillarbox.pool, pillarbox.clock.now())

        async def found(**params: str) -> list[tuple[str, str, int]]:
            asked = {"dimensions": "broadcast", "metrics": "received", **params}
            answer = await team.http.get("/emails/metrics", params=asked)
            keys = ["broadcast_id", "broadcast_name", "received"]
            assert all(list(row)[-3:] == keys for row in answer.json()["data"]), answer.text
            return [tuple(row[key] for key in keys) for row in answer.json()["data"]]

        expected = [(str(unnamed.id), "", 1), (str(berths.id), "Berths", 1), (str(tides.id), "Tides", 1)]
        end = f"{(pillarbox.clock.now() - timedelta(days=1)).date()}"
        for params in ({}, {"end_date": end}, {"dimensions": "period,domain,broadcast", "end_date": end}):
            assert [await found(**params), await found(**params)] == [expected, expected]
        assert await found(broadcast_id=str(tides.id)) == expected[2:]
        answer = await team.call("PATCH", f"/broadcasts/{tides.id}", {"name": "Anchors"})
        assert answer.status_code == 200, answer.text
        renamed = [expected[0], (str(tides.id), "Anchors", 1), expected[1]]
        for params in ({}, {"end_date": end}, {"dimensions": "period,domain,broadcast", "end_date": end}):
            assert await found(**params) == renamed


OURS = {invariant.name for invariant in INVARIANTS}

DAMAGE = [
    ("UPDATE rollups SET opened = opened + 1 WHERE level = 1 AND broadcast_id = $1", OURS),
    (
        "UPDATE rollups SET sent = sent + 1 WHERE level = 0 AND broadcast_id = $1",
        {"broadcast_moments_differ"},
    ),
    (
        "DELETE FROM timeline WHERE kind = 'clicked' AND $1::uuid IS NOT NULL",
        {"broadcast_metric_differs_from_history"},
    ),
    (
        "UPDATE recipients SET opened_at = NULL WHERE $1::uuid IS NOT NULL",
        {"broadcast_metric_differs_from_history"},
    ),
    (
        "UPDATE rollups SET broadcast_id = '00000000-0000-0000-0000-00000000000f' WHERE broadcast_id = $1",
        {"broadcast_metric_differs_from_history"},
    ),
]


@pytest.mark.parametrize(("damage", "says"), DAMAGE)
async def test_verify_finds_counts_that_are_not_the_history(
    database_url: str, tmp_path: Path, damage: str, says: set[str]
) -> None:
    """Of a broadcast whose events are folded; a recipient too many or too few in a report is one of these."""
    async with world(database_url, tmp_path, started=False) as pillarbox:
        made = await lived(pillarbox, 40, 3)
        assert await gaps(pillarbox) == set()
        await rollups.fold(pillarbox.pool, pillarbox.clock.now())
        assert await gaps(pillarbox) == set()
        await pillarbox.pool.execute(damage, made.id)
        assert await gaps(pillarbox) == says


async def gaps(pillarbox: World) -> set[str]:
    """What `verify` finds of the counts; these broadcasts have no content and no jobs, which is not asked
    here."""
    return {gap.name for gap in (await reconcile(pillarbox.pool, 10, INVARIANTS)).gaps} & OURS


async def test_after_retention_has_removed_copies_a_report_ends(database_url: str, tmp_path: Path) -> None:
    """What is left is listed, however large the broadcast was; the metrics keep their counts."""
    async with world(database_url, tmp_path, started=False) as pillarbox:
        made = await lived(pillarbox, 40, 5)
        await rollups.fold(pillarbox.pool, pillarbox.clock.now())
        before = await made.metrics()
        team, now = made.team, pillarbox.clock.now()
        await pillarbox.pool.execute("INSERT INTO purges VALUES ($1, $2, $3)", team.id, now, first_id(now))
        kept = await made.report(type="sent", limit=1)
        for table in ("timeline", "recipients"):
            await pillarbox.pool.execute(f"DELETE FROM {table} WHERE email_id <> $1", made.copies[0].email_id)
        asked = RecipientsAsked("sent", None, None, Page(20))
        found = await recipients.listed(pillarbox.pool, team.id, made.id, asked, few=0)
        assert len(found.data) <= 1
        assert (found.has_more, kept["has_more"]) == (False, True)
        await pillarbox.pool.execute("DELETE FROM recipients")
        found = await recipients.listed(pillarbox.pool, team.id, made.id, asked, few=0)
        assert (found.data, found.has_more) == ([], False)
        assert await gaps(pillarbox) == set()
        assert await made.metrics() == before
