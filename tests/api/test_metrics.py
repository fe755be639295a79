"""GET /emails/metrics: parameters, ranges, periods and the shape of the answer (metrics.md)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kit.client import error
from kit.clock import ManualClock
from kit.histories import instant
from kit.manual_world import clock_of, manual_world
from kit.world import Team
from pillarbox.domains.settings import SIMULATOR_DOMAINS
from pillarbox.kernel.work.jobs import Jobs
from pillarbox.metrics.memory import AnswerCache

NOW = instant("2026-10-07T15:20:30.456789")
KEYS = ("object", "start_date", "end_date", "metrics", "dimensions", "granularity", "totals", "data")
ALL = (
    *("received", "delivered", "complained", "suppressed", "bounced", "bounced_transient"),
    *("bounced_permanent", "bounced_undetermined", "opened", "clicked", "unsubscribed", "delivery_delayed"),
    *("failed", "sent", "unique_opened", "unique_clicked", "delivery_rate", "open_rate", "click_rate"),
    *("bounce_rate", "complaint_rate", "unsubscribe_rate"),
)
ID = "0199a3b0-2c41-7d10-8b52-3e9a6f04c711"


async def asked(team: Team, **params: str | list[str]) -> dict[str, Any]:
    answer = await team.http.get("/emails/metrics", params=params)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


REFUSED = [
    ({"start_date": "soon"}, "start_date"),
    ({"end_date": "2026-13-01"}, "end_date"),
    ({"start_date": "1969-12-31"}, "start_date"),
    ({"timezone": "+02:00"}, "timezone"),
    ({"timezone": "Mars/Olympus"}, "timezone"),
    ({"timezone": "localtime"}, "timezone"),
    ({"timezone": "Factory"}, "timezone"),
    ({"granularity": "yearly"}, "granularity"),
    ({"metrics": "sent,hopes"}, "hopes"),
    ({"dimensions": "period,weather"}, "weather"),
    ({"domain_id": "harbor.example"}, "domain_id"),
    ({"email_id": "1"}, "email_id"),
    ({"broadcast_id": f"{ID},x"}, "broadcast_id"),
    ({"dimensions": "email,broadcast"}, "The `email` and `broadcast` dimensions cannot be combined."),
    ({"email_id": ID, "dimensions": "broadcast"}, "`email_id` filter and the `broadcast` dimension cannot"),
    ({"broadcast_id": ID, "dimensions": "email"}, "`broadcast_id` filter and the `email` dimension cannot"),
    ({"email_id": ID, "broadcast_id": ID}, "The `email_id` and `broadcast_id` filters cannot be combined."),
    ({"start_date": "2026-10-03", "end_date": "2026-10-02"}, "must be on or before `end_date`"),
    ({"start_date": "2026-10-04", "end_date": "2026-10-03"}, "must be on or before `end_date`"),
    (
        {"start_date": "2026-10-03T00:00:00.001Z", "end_date": "2026-10-03T00:00:00Z"},
        "must be on or before `end_date`",
    ),
    ({"start_date": "2026-10-08"}, "must be on or before `end_date`"),
    ({"start_date": "2026-10-08", "end_date": "2026-10-09"}, "must be on or before `end_date`"),
]


@pytest.mark.parametrize(("params", "says"), REFUSED)
async def test_what_is_wrong_is_named(
    database_url: str, tmp_path: Path, params: dict[str, str], says: str
) -> None:
    """Section 1, each row of the table of violations; all of them `validation_error`."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        answer = await team.http.get("/emails/metrics", params=params)
        assert error(answer)[:2] == (422, "validation_error")
        assert says in answer.json()["message"]


async def test_a_list_has_at_most_100_ids_without_repetitions(database_url: str, tmp_path: Path) -> None:
    """Section 1: commas and repetition may be mixed, duplicates do not count, nothing is no filter."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        ids = [str(uuid4()) for _ in range(101)]
        for name in ("domain_id", "email_id", "broadcast_id"):
            await asked(team, **{name: [",".join(ids[:60]), ids[0].upper(), *ids[50:100], ""]})
            answer = await team.http.get("/emails/metrics", params={name: ids})
            assert answer.json()["message"].endswith(f"`{name}` accepts at most 100 values.")
            await asked(team, **{name: ""})


async def test_whole_lists_of_ids_fit_into_a_question(database_url: str, tmp_path: Path) -> None:
    """Section 1: a hundred of each filter, one parameter for each id, beside everything else."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        ids = [str(uuid4()) for _ in range(100)]
        for name in ("email_id", "broadcast_id"):
            found = await asked(team, domain_id=ids, **{name: ids}, metrics=list(ALL), dimensions="period")
            assert found["totals"]["sent"] == 0


async def test_the_plain_question(database_url: str, tmp_path: Path) -> None:
    """Sections 2, 4 and 6: seven times 24 hours less one day up to now, all metrics, no rows."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        found = await asked(await pillarbox.team())
        assert tuple(found) == KEYS
        assert found["object"] == "metrics"
        assert (found["start_date"], found["end_date"]) == (
            "2026-10-01T15:20:30.456Z",
            "2026-10-07T15:20:30.456Z",
        )
        assert tuple(found["metrics"]) == tuple(found["totals"]) == ALL
        assert (found["dimensions"], found["granularity"], found["data"]) == ([], "daily", [])


async def test_numbers_have_their_types(database_url: str, tmp_path: Path) -> None:
    """Section 4: counts are integers, rates have a decimal point; nothing divided by nothing is 0.0."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        answer = await team.http.get("/emails/metrics", params={"metrics": "open_rate,sent,sent"})
        assert '"metrics":["open_rate","sent"]' in answer.text
        assert '"totals":{"open_rate":0.0,"sent":0},"data":[]' in answer.text


RANGES = [
    ({"end_date": "2026-10-03"}, "2026-09-27T00:00:00.000Z", "2026-10-03T00:00:00.000Z"),
    ({"end_date": "2026-10-03T10:00:00+02:00"}, "2026-09-27T08:00:00.000Z", "2026-10-03T08:00:00.000Z"),
    (
        {"start_date": "2026-10-03", "end_date": "2026-10-03"},
        "2026-10-03T00:00:00.000Z",
        "2026-10-03T00:00:00.000Z",
    ),
    (
        {"start_date": "2026-10-07", "end_date": "2026-10-07"},
        "2026-10-07T00:00:00.000Z",
        "2026-10-07T00:00:00.000Z",
    ),
    (
        {"start_date": "2026-10-01", "end_date": "2027-01-01"},
        "2026-10-01T00:00:00.000Z",
        "2026-10-07T15:20:30.456Z",
    ),
    ({"end_date": "2026-10-08"}, "2026-10-01T15:20:30.456Z", "2026-10-07T15:20:30.456Z"),
    (
        {"start_date": "2026-10-03T08:00:00.123456Z", "end_date": "2026-10-03T08:00:00.123456Z"},
        "2026-10-03T08:00:00.123Z",
        "2026-10-03T08:00:00.123Z",
    ),
]


@pytest.mark.parametrize(("params", "start", "end"), RANGES)
async def test_the_range_is_echoed_as_it_was_understood(
    database_url: str, tmp_path: Path, params: dict[str, str], start: str, end: str
) -> None:
    """Section 2: dates alone are whole UTC days, an end in the future is now."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        found = await asked(await pillarbox.team(), **params)
        assert (found["start_date"], found["end_date"]) == (start, end)


async def test_equal_dates_are_one_day_and_equal_instants_nothing(database_url: str, tmp_path: Path) -> None:
    """Sections 2 and 3: 24 hours of a past day, up to the current hour of today, no period of an instant."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()

        async def hours(start: str, end: str) -> list[str]:
            found = await asked(
                team, start_date=start, end_date=end, dimensions="period", granularity="hourly"
            )
            return [row["period"] for row in found["data"]]

        past = await hours("2026-10-03", "2026-10-03")
        assert (len(past), past[0], past[-1]) == (24, "2026-10-03T00:00:00.000Z", "2026-10-03T23:00:00.000Z")
        today = await hours("2026-10-07", "2026-10-07")
        assert (len(today), today[-1]) == (16, "2026-10-07T15:00:00.000Z")
        assert await hours("2026-10-03T08:10:00Z", "2026-10-03T08:10:00Z") == []


PERIODS: list[tuple[str, str, str, str, list[str]]] = [
    ("2025-10-25T22:00:00Z", "2025-10-26T23:00:00Z", "Europe/Berlin", "daily", ["2025-10-26"]),
    ("2026-02-01", "2026-02-28", "UTC", "monthly", ["2026-02-01"]),
    ("2025-12-30", "2026-01-06", "UTC", "weekly", ["2025-12-29", "2026-01-05"]),
    ("2011-12-29T12:00:00Z", "2011-12-30T12:00:00Z", "Pacific/Apia", "daily", ["2011-12-29", "2011-12-31"]),
    (
        "2026-04-04T14:10:00Z",
        "2026-04-04T16:00:00Z",
        "Australia/Lord_Howe",
        "hourly",
        ["2026-04-04T14:00:00.000Z", "2026-04-04T15:00:00.000Z", "2026-04-04T15:30:00.000Z"],
    ),
    (
        "2026-10-02T18:30:00Z",
        "2026-10-02T20:00:00Z",
        "asia/kolkata",
        "hourly",
        ["2026-10-02T18:30:00.000Z", "2026-10-02T19:30:00.000Z"],
    ),
]


@pytest.mark.parametrize(("start", "end", "zone", "granularity", "labels"), PERIODS)
async def test_periods_are_those_of_the_zone(
    database_url: str, tmp_path: Path, start: str, end: str, zone: str, granularity: str, labels: list[str]
) -> None:
    """Section 3: skipped days and repeated hours, the first and last period may be partial."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        found = await asked(
            await pillarbox.team(),
            start_date=start,
            end_date=end,
            timezone=zone,
            granularity=granularity,
            dimensions="period",
        )
        assert [row["period"] for row in found["data"]] == labels


async def test_a_day_of_the_clock_change_has_25_hours(database_url: str, tmp_path: Path) -> None:
    """Section 3: the repeated hour is there twice, the skipped one not at all."""
    async with manual_world(database_url, tmp_path, ManualClock(instant("2026-12-01T00:00:00"))) as pillarbox:
        team = await pillarbox.team()
        for start, end, zone, hours in (
            ("2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", "Europe/Berlin", 25),
            ("2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00", "Europe/Berlin", 23),
            ("2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00", "America/New_York", 25),
            ("2026-03-08T00:00:00-05:00", "2026-03-09T00:00:00-04:00", "America/New_York", 23),
        ):
            found = await asked(
                team, start_date=start, end_date=end, timezone=zone, granularity="hourly", dimensions="period"
            )
            assert len(found["data"]) == hours


async def test_ten_thousand_periods_are_the_most(database_url: str, tmp_path: Path) -> None:
    """Section 1: counted before any filter, only where periods are asked for."""
    start = NOW.replace(minute=0, second=0, microsecond=0) - timedelta(hours=10_000)
    end = start + timedelta(hours=10_000)
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        params = {"start_date": start.isoformat(), "end_date": end.isoformat(), "granularity": "hourly"}
        found = await asked(team, **params, dimensions="period", metrics="sent")
        assert len(found["data"]) == 10_000
        params["start_date"] = (start - timedelta(microseconds=1)).isoformat()
        await asked(team, **params)
        answer = await team.http.get("/emails/metrics", params=params | {"dimensions": "period,domain"})
        assert error(answer)[:2] == (422, "validation_error")
        assert "too long for the granularity" in answer.json()["message"]
        params["start_date"] = "1970-01-01"
        answer = await team.http.get("/emails/metrics", params=params | {"dimensions": "period"})
        assert answer.status_code == 422


async def test_one_mail_to_three_recipients(database_url: str, tmp_path: Path) -> None:
    """Sections 4 and 8, through the real path: the unit is one email to one recipient."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        domain = await team.domain()
        to = ["delivered@simulator.pillarbox.test", "bounced@simulator.pillarbox.test", "ada@quay.example"]
        to = [
            address.replace("simulator.pillarbox.test", min(pillarbox.app.kit.settings[SIMULATOR_DOMAINS]))
            for address in to
        ]
        email = await team.send(to=to)
        await pillarbox.turn()
        clock_of(pillarbox).advance(1)
        found = await asked(team, dimensions="email,domain")
        assert found["totals"]["received"] == 3
        assert found["totals"]["sent"] == 3
        assert found["totals"]["delivered"] == 2
        assert found["totals"]["bounced"] == found["totals"]["bounced_permanent"] == 1
        assert found["totals"]["bounce_rate"] == 33.33
        [row] = found["data"]
        assert tuple(row)[:3] == ("domain_id", "domain_name", "email_id")
        assert (row["domain_id"], row["domain_name"], row["email_id"]) == (domain, "harbor.example", email)
        assert {name: row[name] for name in ALL} == found["totals"]


async def test_another_team_sees_zeros(database_url: str, tmp_path: Path) -> None:
    """Section 1: ids that are foreign match nothing and are no error."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team, other = await pillarbox.team(), await pillarbox.team("Quay")
        domain = await team.domain()
        email = await team.send()
        clock_of(pillarbox).advance(1)
        for params in ({}, {"domain_id": domain}, {"email_id": email}):
            assert (await asked(team, **params))["totals"]["received"] == 1
            found = await asked(other, dimensions="domain", **params)
            assert not any(found["totals"].values())
            assert found["data"] == []


async def test_what_was_just_recorded_counts_at_once_and_once(database_url: str, tmp_path: Path) -> None:
    """Section 6: no later than `last_event`; folding in between changes nothing."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        await team.domain()
        for sent in range(1, 4):
            await team.send()
            assert (await asked(team))["totals"]["received"] == sent
            await pillarbox.app.need(Jobs).look()
            await pillarbox.app.need(Jobs).idle()
            assert (await asked(team))["totals"]["received"] == sent
            clock_of(pillarbox).advance(20)


async def test_the_past_that_is_not_kept_is_cut_off(database_url: str, tmp_path: Path) -> None:
    """Section 2: the start moves to the oldest kept day; a range before it is that day, with zeros."""
    async with manual_world(
        database_url, tmp_path, ManualClock(NOW), metrics_retention_days="3"
    ) as pillarbox:
        team = await pillarbox.team()
        found = await asked(team)
        assert found["start_date"] == "2026-10-04T00:00:00.000Z"
        found = await asked(team, start_date="2026-09-01", end_date="2026-09-03", dimensions="period")
        assert found["start_date"] == found["end_date"] == "2026-10-04T00:00:00.000Z"
        assert found["data"] == []
        found = await asked(team, start_date="2026-09-01", broadcast_id=ID)
        assert found["start_date"] == "2026-09-01T00:00:00.000Z"


async def test_an_answer_is_given_again_where_the_operator_wants_it(
    database_url: str, tmp_path: Path
) -> None:
    """Section 2, contract decision 19: byte for byte, for the team and the question alone."""
    async with manual_world(
        database_url, tmp_path, ManualClock(NOW), metrics_cache_seconds="60"
    ) as pillarbox:
        team, other = await pillarbox.team(), await pillarbox.team("Quay")
        await team.domain()
        first = await team.http.get("/emails/metrics")
        await team.send()
        clock_of(pillarbox).advance(59)
        assert (await team.http.get("/emails/metrics")).content == first.content
        assert (await asked(other))["end_date"] != first.json()["end_date"]
        clock_of(pillarbox).advance(2)
        assert (await asked(team))["totals"]["received"] == 1


async def test_what_is_kept_is_bounded_whatever_is_asked(database_url: str, tmp_path: Path) -> None:
    """Contract decision 19: the questions count too, and what does not matter in them is not kept."""
    async with manual_world(
        database_url, tmp_path, ManualClock(NOW), metrics_cache_seconds="900"
    ) as pillarbox:
        team = await pillarbox.team()
        first = await team.http.get("/emails/metrics?metrics=sent&timezone=UTC")
        await team.send()
        clock_of(pillarbox).advance(1)
        again = "/emails/metrics?timezone=Mars&metrics=sent,sent&timezone=UTC&start_date=&beside=1"
        assert (await team.http.get(again)).content == first.content
    kept, at = AnswerCache(900), NOW
    for number in range(3000):
        kept.put(UUID(int=number), (("x" * 4000,),), at, b"{}")
    assert kept.get(UUID(int=2999), (("x" * 4000,),), at) == b"{}"
    assert sum(kept.get(UUID(int=n), (("x" * 4000,),), at) is not None for n in range(3000)) < 1100


async def test_a_sending_key_may_not_ask(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        key = await team.key(permission="sending_access")
        answer = await team.using(key).http.get("/emails/metrics")
        assert error(answer)[:2] == (401, "restricted_api_key")
