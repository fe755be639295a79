"""The screen of metrics: what the address asks for, the period before, splits, and the file."""

from __future__ import annotations

import csv
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path

import pytest

from kit.people import Visit, a_person, logged_in, text_of
from kit.screens import some_mail
from kit.world import Team, World, world
from pillarbox.people.roles import TeamRole

HERE = "/dashboard/metrics"


@pytest.fixture
@asynccontextmanager
async def here(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with world(database_url, tmp_path, started=False) as made:
        yield made


async def browser(team: Team) -> Visit:
    person = await a_person(team, f"viewer-{team.id.hex[:6]}@harbor.example", TeamRole.VIEWER)
    return await logged_in(team.world, person)


async def test_a_metric_is_shown_with_its_period_before_and_split(here: World) -> None:
    team = await here.team("Harbor")
    await some_mail(team)
    viewer = await browser(team)
    counted = (await team.get("/emails/metrics?metrics=bounced")).json()["totals"]["bounced"]
    assert counted
    plain = await viewer.get(f"{HERE}?metric=bounced")
    assert f"{counted} 0 in the period before" in text_of(plain)
    compared = await viewer.get(f"{HERE}?metric=bounce_rate&compare=yes&granularity=hourly&span=24h")
    assert "Period before" in text_of(compared)
    split = await viewer.get(f"{HERE}?metric=received&by=domain")
    assert "harbor.example" in text_of(split)


async def test_days_are_those_of_the_zone(here: World) -> None:
    team = await here.team("Harbor")
    viewer = await browser(team)
    shown = await viewer.get(f"{HERE}?since=2026-01-05&until=2026-01-07&zone=Pacific/Apia&granularity=daily")
    assert re.findall(r'<th scope="row">(2026-01-..)', shown.text) == [
        "2026-01-05",
        "2026-01-06",
        "2026-01-07",
    ]
    assert "start_date=2026-01-05T00%3A00%3A00.000%2B13%3A00" in shown.text


@pytest.mark.parametrize(
    "query",
    [
        "zone=Moon/Sea",
        "since=yesterday",
        "since=2026-02-02&until=2026-01-01",
        "domain=harbor",
        "since=0001-01-01",
    ],
)
async def test_what_cannot_be_asked_is_said_and_stays_in_the_form(here: World, query: str) -> None:
    viewer = await browser(await here.team("Harbor"))
    answer = await viewer.get(f"{HERE}?{query}")
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert (await viewer.get(f"{HERE}/csv?{query}")).status_code == 422


async def test_the_file_has_a_row_for_each_day_and_domain(here: World) -> None:
    team = await here.team("Harbor")
    await some_mail(team)
    answer = await (await browser(team)).get(f"{HERE}/csv?by=domain&span=7d")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    [row] = list(csv.DictReader(StringIO(answer.text)))
    assert row["domain_name"] == "harbor.example"
    assert int(row["received"]) >= 4


async def test_the_file_has_the_period_before_in_columns_of_its_own(here: World) -> None:
    team = await here.team("Harbor")
    await some_mail(team)
    ada = await browser(team)
    today = team.world.clock.now().date()
    for split in ("", "by=domain&"):
        answer = await ada.get(f"{HERE}/csv?{split}span=7d&compare=yes")
        rows = list(csv.DictReader(StringIO(answer.text)))
        assert f"-{today}.csv" in answer.headers["content-disposition"]
        last = rows[-1]
        assert int(last["received"]) >= 4
        assert last["received_before"] in ("", "0")
        assert last["period_before"] < last["period"]


async def test_nothing_of_another_team_is_counted(here: World) -> None:
    team = await here.team("Harbor")
    await some_mail(team)
    domain_id = await team.domain("pier.example")
    await team.send(**{"from": "hello@pier.example"})
    ben = await browser(await here.team("Quay"))
    for query in ("by=domain", f"by=domain&domain={domain_id}"):
        answer = await ben.get(f"{HERE}/csv?{query}")
        assert len(answer.text.strip().splitlines()) == 1


async def test_a_chart_has_a_bounded_number_of_points(here: World) -> None:
    team = await here.team("Harbor")
    viewer = await browser(team)
    for query, most, is_said in (
        ("span=365d&granularity=hourly", 370, True),
        ("span=30d&granularity=hourly", 725, False),
        ("since=2010-01-01&until=2026-01-01&granularity=daily", 200, True),
    ):
        page = await viewer.get(f"{HERE}?{query}")
        assert 0 < page.text.count("<circle") <= most
        assert ("Drawn per" in page.text) == is_said
        assert '<option value="hourly" selected>' in page.text or "daily" in query
    file = await viewer.get(f"{HERE}/csv?span=365d&granularity=hourly")
    assert len(file.text.splitlines()) > 8000
