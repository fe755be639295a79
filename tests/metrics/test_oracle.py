"""Random questions about a generated history: the endpoint and a plain computation say the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid5

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit import oracle
from kit.clock import ManualClock
from kit.histories import History, Sender, generate, instant
from kit.manual_world import manual_world
from kit.oracle import Asked
from kit.world import Team, World
from pillarbox.timeline import rollups
from pillarbox.timeline.record import Timeline

NAMES = UUID(int=7)
HARBOR, QUAY, PIER = (uuid5(NAMES, name) for name in ("harbor", "quay", "pier"))
NEWS, TIDES = uuid5(NAMES, "news"), uuid5(NAMES, "tides")
SENDERS = (
    Sender(HARBOR, "harbor.example", None),
    Sender(HARBOR, "harbor.example", NEWS),
    Sender(QUAY, "quay.example", None),
    Sender(QUAY, "quay.example", TIDES),
    Sender(PIER, "pier.example", NEWS),
    Sender(None, "sandbox.example", None),
)
NOW = instant("2026-11-21T10:07:33.123456")
WHEN_ALL_WAS_RECENT = instant("2011-01-01T00:00:00")
WINDOWS = tuple(
    (instant(start), instant(end))
    for start, end in (
        ("2026-11-18T22:00:00", "2026-11-21T10:00:00"),
        ("2026-11-20T12:00:00", "2026-11-20T12:05:00"),
        ("2026-10-24T20:00:00", "2026-10-25T12:00:00"),
        ("2026-10-31T20:00:00", "2026-11-02T12:00:00"),
        ("2026-10-03T10:00:00", "2026-10-04T16:00:00"),
        ("2026-04-04T10:00:00", "2026-04-05T16:00:00"),
        ("2026-03-28T20:00:00", "2026-03-29T04:00:00"),
        ("2026-02-27T00:00:00", "2026-03-02T00:00:00"),
        ("2025-12-27T00:00:00", "2026-01-04T00:00:00"),
        ("2018-11-03T20:00:00", "2018-11-05T00:00:00"),
        ("2011-12-29T00:00:00", "2012-01-01T12:00:00"),
    )
)
ZONES = (
    *("UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/St_Johns", "America/Sao_Paulo"),
    *("America/Caracas", "America/Los_Angeles", "America/Havana", "America/Asuncion", "Atlantic/Azores"),
    *(
        "Africa/Cairo",
        "Africa/Casablanca",
        "Africa/Monrovia",
        "Asia/Kolkata",
        "Asia/Kathmandu",
        "Asia/Tehran",
    ),
    *("Asia/Kabul", "Asia/Yangon", "Asia/Pyongyang", "Asia/Beirut", "Asia/Gaza", "Asia/Tokyo"),
    *("Australia/Lord_Howe", "Australia/Adelaide", "Australia/Eucla", "Pacific/Apia", "Pacific/Chatham"),
    *("Pacific/Marquesas", "Pacific/Kiritimati", "Antarctica/Troll"),
)
DIMENSIONS = (
    *((), ("period",), ("domain",), ("email",), ("broadcast",), ("period", "domain"), ("period", "email")),
    *(("period", "broadcast"), ("domain", "email"), ("domain", "broadcast"), ("period", "domain", "email")),
    ("period", "domain", "broadcast"),
)
SPANS = {
    "hourly": timedelta(days=4),
    "daily": timedelta(days=40),
    "weekly": timedelta(days=60),
    "monthly": timedelta(days=90),
}


NEAR = timedelta(minutes=12)
"""Ranges begin shortly before an event, so that what lies at their edges matters."""


@dataclass(frozen=True)
class CountedTeam:
    """A world with a history in it."""

    world: World
    team: Team
    history: History

    async def answer(self, asked: Asked) -> str:
        answer = await self.team.http.get("/emails/metrics", params=asked.params())
        assert answer.status_code == 200, answer.text
        return str(answer.text)


@asynccontextmanager
async def counted_team(database_url: str, folder: Path, emails: int) -> AsyncIterator[CountedTeam]:
    """Half of the history is folded, with the ten-second rollups of quiet quarters thinned out; the other
    half is not folded at all, or folded later."""
    async with manual_world(database_url, folder, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        other = await pillarbox.team("Quay")
        timeline = pillarbox.app.need(Timeline)
        history = await generate(pillarbox.pool, timeline, team.id, WINDOWS, SENDERS, emails, 1, NOW)
        await generate(pillarbox.pool, timeline, other.id, WINDOWS, SENDERS, 20, 2, NOW)
        await rollups.fold(pillarbox.pool, WHEN_ALL_WAS_RECENT)
        await rollups.thin(pillarbox.pool, NOW, busy=3)
        later = await generate(pillarbox.pool, timeline, team.id, WINDOWS, SENDERS, emails // 2, 3, NOW)
        await rollups.fold(pillarbox.pool, NOW)
        last = await generate(pillarbox.pool, timeline, team.id, WINDOWS, SENDERS, emails // 2, 4, NOW)
        for more in (later, last):
            history.emails += more.emails
            history.events += more.events
        yield CountedTeam(pillarbox, team, history)


@st.composite
def questions(draw: st.DrawFn, history: History) -> Asked:
    granularity = draw(st.sampled_from(sorted(SPANS)))
    dimensions = draw(st.sampled_from(DIMENSIONS))
    start = draw(st.sampled_from(history.events)).at - draw(st.timedeltas(timedelta(0), NEAR))
    length = draw(
        st.one_of(
            st.timedeltas(timedelta(0), SPANS[granularity]),
            st.timedeltas(timedelta(0), timedelta(minutes=20)),
            st.timedeltas(timedelta(0), timedelta(seconds=15)),
        )
    )
    whole = draw(st.sampled_from((1, 1, 10 * 10**6, 900 * 10**6)))
    start -= timedelta(microseconds=int(start.timestamp() * 10**6) % whole)
    end = start + length
    if draw(st.booleans()):
        near = [event.at for event in history.events if timedelta(0) < event.at - start < 2 * length]
        end = (
            draw(st.sampled_from(near)) + timedelta(microseconds=draw(st.integers(1, 9 * 10**6)))
            if near
            else end
        )
    end = min(end, NOW)
    emails = (
        draw(st.lists(st.sampled_from(history.emails), max_size=3)) if "broadcast" not in dimensions else []
    )
    broadcasts: list[UUID] = []
    if not emails and "email" not in dimensions:
        broadcasts = draw(st.lists(st.sampled_from((NEWS, TIDES, QUAY)), max_size=2))
    domains = draw(st.lists(st.sampled_from((HARBOR, QUAY, NEWS)), max_size=2))
    return Asked(
        start=start,
        end=end,
        zone=draw(st.sampled_from(ZONES)),
        granularity=granularity,
        dimensions=dimensions,
        domains=tuple(dict.fromkeys(domains)),
        emails=tuple(dict.fromkeys(emails)),
        broadcasts=tuple(dict.fromkeys(broadcasts)),
    )


def test_any_question_has_the_answer_of_the_plain_computation(
    database_url: str, tmp_path: Path, many: int
) -> None:
    """Zones with odd offsets, skipped days and hours, edges anywhere, all dimensions and filters (API-12)."""

    async def ask() -> None:
        async with counted_team(database_url, tmp_path, 300) as made:
            loop = asyncio.get_running_loop()

            @settings(
                max_examples=many,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            @given(questions(made.history))
            def each(asked: Asked) -> None:
                answer = asyncio.run_coroutine_threadsafe(made.answer(asked), loop).result()
                totals, data = oracle.totals(made.history, asked), oracle.data(made.history, asked)
                assert json.loads(answer)["totals"] == totals
                assert json.loads(answer)["data"] == data
                # Octet for octet: the order of names, what is a decimal, no blanks.
                written = json.dumps({"totals": totals, "data": data}, separators=(",", ":"))
                assert answer.endswith("," + written.removeprefix("{"))

            await asyncio.to_thread(each)

    asyncio.run(ask())
