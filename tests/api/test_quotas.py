"""Quotas (conventions section 8) and `GET /usage` (section 12): exact, for whole requests, over processes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from kit.automation_rows import an_automation, sleeping_runs
from kit.client import error
from kit.manual_world import clock_of, manual_world
from kit.submission import message_bytes, submission
from kit.world import Team, World, mail, world
from pillarbox.api_keys.credentials import KeyCredentials
from pillarbox.kernel.ids import Ids, first_id
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.receiving.arrival import AcceptedRecipient, Arrival, ArrivalFate
from pillarbox.receiving.receive import MessageReceiver
from pillarbox.teams.bootstrap import set_limits
from pillarbox.timeline import rollups
from pillarbox.timeline.rebuilding import rebuild
from pillarbox.usage import jobs

NOW = datetime(2026, 10, 3, 8, 15, tzinfo=UTC)
UNTIL_MIDNIGHT = (24 - 8) * 3600 - 15 * 60
UNTIL_NOVEMBER = UNTIL_MIDNIGHT + 28 * 86_400
DAILY, MONTHLY = "x-resend-daily-quota", "x-resend-monthly-quota"


async def limited(pillarbox: World, **limits: int | None) -> Team:
    team = await pillarbox.team()
    await limit(team, **limits)
    return team


async def limit(team: Team, **limits: int | None) -> None:
    """Set limits, and let the second pass until which they may be unknown."""
    assert await set_limits(team.world.pool, team.id, limits)
    team.world.app.need(KeyCredentials).forget(team.id)


def used(answer: httpx.Response) -> tuple[str | None, str | None]:
    return answer.headers.get(DAILY), answer.headers.get(MONTHLY)


def to(number: int) -> dict[str, Any]:
    return mail(to=[f"p{index}@quay.example" for index in range(number)])


async def received(team: Team, subject: str = "x") -> str:
    """A mail from outside; its id."""
    raw = f"From: ann@quay.example\r\nSubject: {subject}\r\n\r\nhi {uuid4()}\r\n".encode()
    arrival = Arrival(
        client="",
        helo="",
        protocol="LMTP",
        tls=None,
        mail_from="",
        recipients=(AcceptedRecipient(team.id, "help@harbor.example"),),
    )
    outcome = await team.world.app.need(MessageReceiver).take(arrival, ReceivedText(raw, None, len(raw)))
    assert outcome.fate is ArrivalFate.STORED
    return str(outcome.ids[0])


async def test_a_request_fits_whole_or_not_at_all(pillarbox: World) -> None:
    team = await limited(pillarbox, daily_quota=5)
    first = await team.post("/emails", mail(to=["a@quay.example"], cc=["b@quay.example"], bcc="c@x.example"))
    assert (first.status_code, used(first)) == (200, ("3", None))
    over = await team.post("/emails", to(3))
    assert error(over)[:2] == (429, "daily_quota_exceeded")
    assert (over.headers["retry-after"], used(over)) == (str(UNTIL_MIDNIGHT), ("3", None))
    batch = await team.post("/emails/batch", [mail(), to(2)])
    assert error(batch)[:2] == (429, "daily_quota_exceeded")
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM emails") == 1
    assert used(await team.post("/emails/batch", [mail(), mail()])) == ("5", None)
    assert error(await team.post("/emails", mail()))[0] == 429
    assert error(await team.post("/emails", mail(to="nobody")))[0] == 422
    await limit(team, daily_quota=6)
    assert used(await team.post("/emails", mail())) == ("6", None)
    await limit(team, daily_quota=0)
    assert error(await team.post("/emails", mail()))[0] == 429
    await limit(team, daily_quota=None)
    last = await team.post("/emails", to(50))
    assert (last.status_code, used(last)) == (200, (None, None))


async def test_days_and_months_are_those_of_utc(pillarbox: World) -> None:
    """The day is asked first. Folding the counts changes nothing."""
    clock = clock_of(pillarbox)
    clock.set(NOW)
    team = await limited(pillarbox, daily_quota=4, monthly_quota=6)
    assert used(await team.post("/emails", to(4))) == ("4", "4")
    assert error(await team.post("/emails", to(9)))[1] == "daily_quota_exceeded"
    clock.set(datetime(2026, 10, 3, 23, 59, 59, 900_000, tzinfo=UTC))
    late = await team.post("/emails", mail())
    assert (late.status_code, late.headers["retry-after"]) == (429, "1")
    await rollups.fold(pillarbox.pool, clock.now())
    clock.set(datetime(2026, 10, 4, tzinfo=UTC))
    assert used(await team.get("/emails")) == ("0", "4")
    assert used(await team.post("/emails", to(2))) == ("2", "6")
    over = await team.post("/emails", mail())
    assert error(over)[:2] == (429, "monthly_quota_exceeded")
    assert over.headers["retry-after"] == str(28 * 86_400)
    await rollups.fold(pillarbox.pool, clock.now())
    assert error(await team.post("/emails", mail()))[1] == "monthly_quota_exceeded"
    clock.set(datetime(2026, 11, 1, tzinfo=UTC))
    assert used(await team.post("/emails", mail())) == ("1", "1")


async def test_what_was_sent_before_a_quota_was_set_counts(pillarbox: World) -> None:
    team = await pillarbox.team()
    await team.post("/emails", to(3))
    await rollups.fold(pillarbox.pool, clock_of(pillarbox).now())
    await team.post("/emails", to(2))
    await limit(team, monthly_quota=6)
    assert used(await team.get("/emails")) == (None, "5")
    assert error(await team.post("/emails", to(2)))[1] == "monthly_quota_exceeded"
    assert used(await team.post("/emails", mail())) == (None, "6")


async def test_what_a_rebuild_takes_away_is_not_used(pillarbox: World) -> None:
    """At once, not only when its increments are folded."""
    team = await limited(pillarbox, daily_quota=10)
    await team.post("/emails", to(3))
    now = clock_of(pillarbox).now()
    await rollups.fold(pillarbox.pool, now)
    await pillarbox.pool.execute("UPDATE rollups SET received = received + 7")
    assert error(await team.post("/emails", mail()))[1] == "daily_quota_exceeded"
    found = rebuild(pillarbox.pool, Ids(pillarbox.clock), team.id, now, correct=True)
    assert [(lack.metric, lack.written, lack.counted) async for lack in found] == [("received", 10, 3)]
    assert (await team.get("/usage")).json()["emails"]["daily"]["used"] == 3
    assert used(await team.post("/emails", to(7))) == ("10", None)


async def test_every_authenticated_answer_says_what_is_used(database_url: str, tmp_path: Path) -> None:
    """Each header only where that quota is set, whatever the answer."""
    async with manual_world(database_url, tmp_path, rate_limit="50") as pillarbox:
        team = await limited(pillarbox, daily_quota=10, monthly_quota=100)
        sender = team.using(await team.key(permission="sending_access"))
        await team.post("/emails", to(7))
        for answer in (
            await team.get("/emails"),
            await team.http.head("/emails"),
            await team.get(f"/emails/{uuid4()}"),
            await team.post("/emails", {}),
            await team.http.post("/emails", content=b"{"),
            await team.post("/api-keys", {"name": "x"}),
            await sender.get("/domains"),
            await team.get("/logs"),
        ):
            assert used(answer) == ("7", "7"), answer.request.url
        await limit(team, rate_limit=1)
        clock_of(pillarbox).advance(1.0)
        slowed = [await team.get("/emails") for _ in range(3)][-1]
        assert (slowed.status_code, used(slowed)) == (429, ("7", "7"))
        refused = await pillarbox.client("re_12345678_123456789012345678901234").get("/emails")
        assert (refused.status_code, used(refused)) == (403, (None, None))
        quay = await pillarbox.team("Quay")
        assert used(await quay.get("/emails")) == (None, None)


async def test_idempotent_requests_are_paid_once(pillarbox: World) -> None:
    """A replay costs nothing; the key of a request that had no room is free again, for any body."""
    team = await limited(pillarbox, daily_quota=3)
    first = await team.post("/emails", to(2), idempotency_key="a")
    again = await team.post("/emails", to(2), idempotency_key="a")
    assert (again.content, used(again)) == (first.content, ("2", None))
    assert (await team.post("/emails", to(2), idempotency_key="b")).status_code == 429
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM idempotency_keys") == 1
    assert used(await team.post("/emails", mail(), idempotency_key="b")) == ("3", None)
    assert (await team.post("/emails", to(2), idempotency_key="a")).content == first.content


async def test_a_canceled_email_gives_its_units_back(pillarbox: World) -> None:
    """Once, and to the day it was accepted on."""
    team = await limited(pillarbox, daily_quota=5, monthly_quota=50)
    body = {**to(4), "scheduled_at": "in 2 days"}
    early = (await team.post("/emails", body)).json()["id"]
    assert error(await team.post("/emails", to(2)))[0] == 429
    assert used(await team.post(f"/emails/{early}/cancel")) == ("0", "0")
    assert used(await team.post(f"/emails/{early}/cancel")) == ("0", "0")
    kept = (await team.post("/emails", body)).json()["id"]
    clock_of(pillarbox).advance(86_400.0)
    assert used(await team.get("/emails")) == ("0", "4")
    assert used(await team.post("/emails", to(1))) == ("1", "5")
    assert used(await team.post(f"/emails/{kept}/cancel")) == ("1", "1")


async def test_quotas_are_exact_over_processes(database_url: str, tmp_path: Path) -> None:
    """Two processes, one team, many requests at once: exactly as many units as there are, and no team waits
    for the quota of another."""
    async with (
        world(database_url, tmp_path, started=False) as one,
        world(database_url, tmp_path, started=False) as two,
    ):
        team = await limited(one, daily_quota=40)
        free = await one.team("Quay")
        other = Team(two, team.id, team.token, two.client(team.token))
        sent = [
            http_server.post("/emails", to(1 + index % 3))
            for index in range(40)
            for http_server in (team, other)
        ]
        more = [free.post("/emails", mail()) for _ in range(20)]
        answers = await asyncio.gather(*sent, *more)
        units = [1 + index % 3 for index in range(40) for _ in range(2)]
        accepted = [
            number for number, answer in zip(units, answers, strict=False) if answer.status_code == 200
        ]
        assert {answer.status_code for answer in answers[: len(sent)]} == {200, 429}
        assert {answer.status_code for answer in answers[len(sent) :]} == {200}
        stored = "SELECT count(*) FROM recipients WHERE team_id = $1"
        assert await one.pool.fetchval(stored, team.id) == sum(accepted) <= 40
        rest = 40 - sum(accepted)
        if rest:
            assert used(await team.post("/emails", to(rest))) == ("40", None)
        assert error(await other.post("/emails", mail()))[1] == "daily_quota_exceeded"


async def test_teams_without_a_quota_pay_nothing(pillarbox: World) -> None:
    """Neither the counts nor their lock are touched."""
    team = await pillarbox.team()
    await pillarbox.pool.execute("ALTER TABLE usage_days RENAME TO elsewhere")
    assert (await team.post("/emails", mail())).status_code == 200
    assert (await team.get("/emails")).status_code == 200


async def test_received_mail_counts_and_is_kept_back_above_the_quota(pillarbox: World) -> None:
    team = await limited(pillarbox, daily_quota=4, monthly_quota=100)
    await team.post("/emails", to(2))
    inside, above = [await received(team) for _ in range(2)], [await received(team) for _ in range(2)]
    assert used(await team.get("/emails")) == ("6", "6")
    assert error(await team.post("/emails", mail()))[1] == "daily_quota_exceeded"
    listed = (await team.get("/emails/receiving")).json()["data"]
    assert [row["id"] for row in listed] == [*reversed(inside + above)]

    async def readable(ids: list[str]) -> list[int]:
        return [(await team.get(f"/emails/receiving/{found}")).status_code for found in ids]

    assert await readable(inside + above) == [200, 200, 403, 403]
    for path in ("", "/attachments", f"/attachments/{uuid4()}"):
        refused = await team.get(f"/emails/receiving/{above[0]}{path}")
        assert error(refused)[:2] == (403, "email_above_quota")
    assert error(await team.post(f"/emails/{above[0]}/share", {}))[1] == "email_above_quota"
    await limit(team, daily_quota=5)
    assert await readable(inside + above) == [200, 200, 200, 403]
    await limit(team, daily_quota=1)
    assert await readable(inside) == [200, 200]
    await limit(team, daily_quota=None)
    assert await readable(inside + above) == [200] * 4
    await limit(team, monthly_quota=6)
    seventh = await received(team)
    assert await readable([*above, seventh]) == [200, 200, 403]


async def test_usage(database_url: str, tmp_path: Path) -> None:
    """The contract's example, field by field, with and without quotas."""
    async with manual_world(database_url, tmp_path, rate_limit="10", most_domains="7") as pillarbox:
        clock_of(pillarbox).set(NOW)
        team = await pillarbox.team()
        sender = team.using(await team.key(permission="sending_access"))
        await team.domain()
        await team.post("/emails", to(40))
        await received(team)
        await received(team)
        answer = await sender.get("/usage")
        assert answer.status_code == 200
        most = 9007199254740991
        day, month = "2026-10-04T00:00:00.000Z", "2026-11-01T00:00:00.000Z"
        emails = {"used": 42, "limit": None, "sent": 40, "received": 2, "resets_at": day}
        assert list(answer.json().items()) == [
            ("object", "usage"),
            ("emails", {"daily": emails, "monthly": {**emails, "limit": most, "resets_at": month}}),
            ("contacts", {"used": 0, "limit": most}),
            ("segments", {"used": 0, "limit": None}),
            ("broadcasts", {"used": 0, "limit": None}),
            ("ai_credits", {"used": 0, "limit": None, "next_increase_at": None}),
            ("automation_runs", {"used": 0, "limit": most, "resets_at": month}),
            ("domains", {"used": 1, "limit": 7}),
            ("rate_limit", {"limit": 10, "duration": "1000ms"}),
        ]
        await limit(team, daily_quota=50, monthly_quota=60, rate_limit=3)
        clock_of(pillarbox).advance(timedelta(days=1))
        found = (await team.get("/usage")).json()
        assert (found["emails"]["daily"]["used"], found["emails"]["daily"]["limit"]) == (0, 50)
        assert (found["emails"]["monthly"]["used"], found["emails"]["monthly"]["limit"]) == (42, 60)
        assert found["rate_limit"]["limit"] == 3
        assert error(await pillarbox.client(None).get("/usage"))[:2] == (401, "missing_api_key")
        quay = await pillarbox.team("Quay")
        assert (await quay.get("/usage")).json()["emails"]["monthly"]["used"] == 0


async def test_old_days_are_forgotten(pillarbox: World) -> None:
    team = await pillarbox.team()
    await received(team)
    assert await jobs.remove_old_days(pillarbox.pool, pillarbox.clock) == 0
    clock_of(pillarbox).advance(timedelta(days=63))
    assert await jobs.remove_old_days(pillarbox.pool, pillarbox.clock) == 0, "its mail is still there"
    await pillarbox.pool.execute("UPDATE usage_days SET octets = 0")
    assert await jobs.remove_old_days(pillarbox.pool, pillarbox.clock) == 1


@pytest.mark.parametrize("quota", ["daily_quota", "monthly_quota"])
async def test_submission_hears_of_quotas(database_url: str, tmp_path: Path, quota: str) -> None:
    """452 4.7.1 (emails.md section 10)."""
    async with (
        submission(database_url, tmp_path) as (team, listeners),
        listeners.program(team.token) as client,
    ):
        await limit(team, **{quota: 2})
        said = await client.send(message_bytes(), to=["a@quay.example", "b@quay.example"])
        assert said.code == 250
        said = await client.send(message_bytes(), to=["a@quay.example"])
        assert (said.code, str(said)) == (452, "452 4.7.1")


async def test_the_runs_of_automations_of_the_month_are_counted(pillarbox: World) -> None:
    """conventions section 12: other teams' runs do not count."""
    team, quay = await pillarbox.team(), await pillarbox.team("Quay")
    automation = await an_automation(team)
    [first, *_] = await sleeping_runs(team, automation, 3)
    assert (await team.get("/usage")).json()["automation_runs"]["used"] == 3
    assert (await quay.get("/usage")).json()["automation_runs"]["used"] == 0
    earlier = first_id(datetime(2026, 9, 30, 23, 59, tzinfo=UTC))
    await pillarbox.pool.execute("UPDATE automation_runs SET id = $1 WHERE id = $2", earlier, first)
    assert (await team.get("/usage")).json()["automation_runs"]["used"] == 2
