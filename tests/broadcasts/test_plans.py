"""Slow sending and A/B tests (broadcasts.md section 11)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from structlog.testing import capture_logs

from kit.audience import a_property, a_segment, joins, some_contacts
from kit.broadcasts import made, sent, status_of
from kit.brought import INVARIANTS
from kit.client import error
from kit.clock import ManualClock
from kit.manual_world import clock_of, manual_world, parsed, relayed_world, run_jobs
from kit.tracking import URL, Reader, hrefs, html_of, pixels, tracks
from kit.world import Team, World
from pillarbox.broadcasts.content import MOST_BODY
from pillarbox.broadcasts.plans.plan import SendingHours, copies_at_once, gap_after, next_quarter
from pillarbox.broadcasts.plans.queries import VariantCounts
from pillarbox.broadcasts.plans.stages import winner_of
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.mail.placeholders.parsing import has_too_many

NOON = datetime(2026, 10, 5, 12, tzinfo=UTC)
HARBOR: dict[str, Any] = {"start": 9, "end": 17, "time_zone": "Europe/Berlin"}
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"
LINKS = '<p>Hi</p><a href="https://harbor.example/tides">Tides</a>'


async def planned(team: Team, count: int, plan: dict[str, Any], **fields: Any) -> str:
    """Begin a broadcast with a plan to so many contacts; return its id."""
    segment = await a_segment(team)
    await joins(team, segment, await some_contacts(team, count))
    broadcast_id = await made(team, segment, plan=plan, **fields)
    await sent(team, broadcast_id)
    await run_jobs(team.world)
    return broadcast_id


async def goes_on(world: World, seconds: float = 2) -> None:
    """Let time pass, the watch look, and the engine make and send what is due."""
    clock_of(world).advance(seconds)
    await run_jobs(world)
    await world.turn()


async def progress(team: Team, broadcast_id: str) -> dict[str, Any]:
    answer = await team.get(f"/broadcasts/{broadcast_id}/progress")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def copies(team: Team) -> int:
    found: int = await team.world.pool.fetchval("SELECT count(email_id) FROM broadcast_recipients")
    return found


async def is_sound(team: Team) -> None:
    found = await reconcile(team.world.pool, 5, INVARIANTS)
    assert found.gaps == []


async def test_a_canary_goes_first_and_the_others_follow_once_its_figures_were_good(
    database_url: str, tmp_path: Path
) -> None:
    async with relayed_world(database_url, tmp_path) as (pillarbox, _):
        team = await pillarbox.team()
        await team.domain()
        broadcast_id = await planned(team, 41, {"canary": {"percent": 10, "minutes": 60}})
        await pillarbox.turn()
        assert await copies(team) == 5
        await goes_on(pillarbox)
        await goes_on(pillarbox)
        found = await progress(team, broadcast_id)
        assert (found["stage"], found["copies"], found["recipients"]) == ("checking", 5, 41)
        await goes_on(pillarbox, 3500)
        assert await copies(team) == 5
        await goes_on(pillarbox, 100)
        await goes_on(pillarbox)
        assert await copies(team) == 41
        await goes_on(pillarbox)
        assert await status_of(team, broadcast_id) == "sent"
        await is_sound(team)


async def test_a_canary_that_bounces_stops_the_broadcast_until_somebody_resumes_it(
    database_url: str, tmp_path: Path
) -> None:
    async with relayed_world(database_url, tmp_path) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        sink.script("RCPT", then="550 5.1.1 no such user")
        broadcast_id = await planned(team, 40, {"canary": {"percent": 10, "minutes": 60}})
        await pillarbox.turn()
        for _ in range(3):
            await goes_on(pillarbox)
        found = await progress(team, broadcast_id)
        assert (found["bounced"], found["paused_at"] is None) == (4, False)
        assert found["reason"].startswith("The canary went wrong: 100.00 % of 4 sent copies bounced")
        assert error(await team.post(f"/broadcasts/{broadcast_id}/pause"))[0] == 403
        await goes_on(pillarbox, 7200)
        assert await copies(team) == 4
        assert (await team.post(f"/broadcasts/{broadcast_id}/resume")).status_code == 200
        assert error(await team.post(f"/broadcasts/{broadcast_id}/resume"))[0] == 403
        await goes_on(pillarbox)
        assert await copies(team) == 40


async def test_a_canary_is_judged_by_all_its_copies_though_somebody_paused_meanwhile(
    database_url: str, tmp_path: Path
) -> None:
    async with relayed_world(database_url, tmp_path) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        sink.script("RCPT", then="550 5.1.1 no such user")
        broadcast_id = await planned(team, 40, {"canary": {"percent": 10, "minutes": 60}})
        await pillarbox.turn()
        assert (await team.post(f"/broadcasts/{broadcast_id}/pause")).status_code == 200
        clock_of(pillarbox).advance(1000)
        assert (await team.post(f"/broadcasts/{broadcast_id}/resume")).status_code == 200
        for _ in range(3):
            await goes_on(pillarbox)
        found = await progress(team, broadcast_id)
        assert (found["reason"] or "").startswith("The canary went wrong")
        await goes_on(pillarbox, 7200)
        assert await copies(team) == 4


async def test_a_plan_that_cannot_be_carried_out_here_stops_no_other_broadcast(
    database_url: str, tmp_path: Path
) -> None:
    """Another node may know zones that this one does not."""
    async with relayed_world(database_url, tmp_path) as (pillarbox, _):
        team = await pillarbox.team()
        await team.domain()
        await planned(team, 3, {"hours": {**HARBOR, "start": 0, "end": 24}})
        await pillarbox.pool.execute(
            "UPDATE broadcast_plans SET plan = replace(plan::text, 'Europe/Berlin', 'Harbor/Pier')::json"
        )
        segment = await a_segment(team)
        await joins(team, segment, await some_contacts(team, 2))
        await sent(team, await made(team, segment))
        await run_jobs(pillarbox)
        await pillarbox.turn()
        assert await copies(team) == 2


async def test_a_plan_that_cannot_be_read_is_told_once_in_a_while(database_url: str, tmp_path: Path) -> None:
    async with relayed_world(database_url, tmp_path) as (pillarbox, _):
        team = await pillarbox.team()
        await team.domain()
        await planned(team, 3, {"per_hour": 60})
        await pillarbox.pool.execute("""UPDATE broadcast_plans SET plan = '{"per_hour": "many"}'""")
        with capture_logs() as said:
            for _ in range(3):
                await pillarbox.turn()
        assert [one["event"] for one in said].count("broadcasts.copies_not_made") == 1
        clock_of(pillarbox).advance(60)
        with capture_logs() as said:
            await pillarbox.turn()
        assert [one["event"] for one in said].count("broadcasts.copies_not_made") == 1
        assert await copies(team) == 0


async def test_no_more_than_so_many_copies_are_made_in_any_hour(database_url: str, tmp_path: Path) -> None:
    async with relayed_world(database_url, tmp_path) as (pillarbox, _):
        team = await pillarbox.team()
        await team.domain()
        broadcast_id = await planned(team, 30, {"per_hour": 12})
        made_at: list[int] = []
        for second in range(0, 3 * 3600, 306):
            before = await copies(team)
            await pillarbox.turn()
            made_at += [second] * (await copies(team) - before)
            clock_of(pillarbox).advance(306)
        assert len(made_at) == 30
        for first in made_at:
            assert sum(first <= second < first + 3600 for second in made_at) <= 12
        assert max(Counter(made_at).values()) == 1
        assert sum(second < 3600 for second in made_at) >= 11
        await goes_on(pillarbox)
        assert await status_of(team, broadcast_id) == "sent"


async def test_copies_are_made_in_the_hours_of_the_recipients_zone(database_url: str, tmp_path: Path) -> None:
    """Three contacts in Berlin (by default), one in Auckland, one in New York; it is 12:00 UTC."""
    clock = ManualClock(NOON)
    async with manual_world(database_url, tmp_path, clock, route="capture") as pillarbox:
        team = await pillarbox.team()
        await team.domain()
        await a_property(team, "zone")
        segment = await a_segment(team)
        for name, zone in (("a", None), ("b", "no zone"), ("c", "Europe/Berlin")):
            await joined(team, segment, name, zone)
        await joined(team, segment, "auckland", "pacific/auckland")
        await joined(team, segment, "york", "America/New_York")
        broadcast_id = await made(team, segment, plan={"hours": {**HARBOR, "property": "zone"}})
        await sent(team, broadcast_id)
        await run_jobs(pillarbox)
        await pillarbox.turn()
        assert await copies(team) == 3
        await goes_on(pillarbox, 3600)
        assert await copies(team) == 4
        await goes_on(pillarbox, 6 * 3600)
        assert await copies(team) == 4
        await goes_on(pillarbox, 3600)
        assert await copies(team) == 5
        await is_sound(team)


async def joined(team: Team, segment: UUID, name: str, zone: str | None) -> None:
    new = {"email": f"{name}@quay.example", "segments": [{"id": str(segment)}]}
    answer = await team.post("/contacts", {**new, **({"properties": {"zone": zone}} if zone else {})})
    assert answer.status_code == 201, answer.text


async def test_an_ab_test_has_a_winner_that_the_others_get(database_url: str, tmp_path: Path) -> None:
    """Each contact gets one variant, once; machines decide nothing; the figures are those of the rows."""
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await tracks(team)
        test = {
            "variants": [{"subject": "High"}, {"subject": "Low", "html": f"{LINKS}<p>low</p>"}],
            "percent": 20,
            "winner_by": "clicks",
            "minutes": 120,
        }
        broadcast_id = await planned(team, 51, {"ab_test": test}, subject="Tides", html=LINKS)
        await pillarbox.turn()
        messages = await sink.messages(11)
        subjects = Counter(parsed(message)["subject"] for message in messages)
        assert subjects == {"High": 6, "Low": 5}
        reader = Reader(team)
        low = [message for message in messages if parsed(message)["subject"] == "Low"]
        high = [message for message in messages if parsed(message)["subject"] == "High"]
        for message in high:
            url = hrefs(html_of(message))[0]
            await reader.asks(url, user_agent="Barracuda")
            await reader.asks(pixels(html_of(message))[0], user_agent=BROWSER)
        await reader.asks(hrefs(html_of(low[0]))[0], user_agent=BROWSER)
        await goes_on(pillarbox)
        await goes_on(pillarbox)
        found = await progress(team, broadcast_id)
        assert (found["stage"], found["winner"]) == ("deciding", None)
        assert [(one["copies"], one["opened"], one["clicked"]) for one in found["variants"]] == [
            (6, 6, 0),
            (5, 0, 1),
        ]
        await goes_on(pillarbox, 7200)
        assert (await progress(team, broadcast_id))["winner"] == 2
        answer = await team.post(f"/broadcasts/{broadcast_id}/winner", {"variant": 1})
        assert error(answer)[0] == 403
        await goes_on(pillarbox)
        messages = await sink.messages(40)
        assert {parsed(message)["subject"] for message in messages[-40:]} <= {"Low"}
        rows = await pillarbox.pool.fetch(
            "SELECT variant, count(*), count(DISTINCT email_id) AS emails"
            "  FROM broadcast_recipients GROUP BY 1"
        )
        assert {row["variant"]: (row["count"], row["emails"]) for row in rows} == {1: (6, 6), 2: (45, 45)}
        await goes_on(pillarbox)
        assert await status_of(team, broadcast_id) == "sent"
        await is_sound(team)


def test_the_winner_is_the_best_rate() -> None:
    def one(number: int, copies: int, opened: int, clicked: int) -> VariantCounts:
        return VariantCounts(
            number=number, copies=copies, sent=copies, opened=opened, clicked=clicked, opened_by_machine=0
        )

    assert winner_of([one(1, 100, 50, 3), one(2, 10, 6, 0)], "opens") == 2
    assert winner_of([one(1, 100, 50, 3), one(2, 10, 6, 0)], "clicks") == 1
    assert winner_of([one(1, 10, 5, 1), one(2, 10, 5, 2)], "opens") == 2
    assert winner_of([one(1, 0, 0, 0), one(2, 0, 0, 0)], "opens") == 1


@pytest.mark.parametrize("per_hour", [1, 2, 59, 60, 61, 119, 120, 7200])
def test_portions_of_an_hour_never_exceed_it(per_hour: int) -> None:
    instant, made_at = 0.0, []
    while instant < 3 * 3600:
        portion = copies_at_once(per_hour, 100)
        made_at.append((instant, portion))
        instant += gap_after(per_hour, portion).total_seconds()
    for first, _ in made_at:
        assert sum(count for at, count in made_at if first <= at < first + 3600) <= per_hour


def test_hours_go_by_the_clock_of_the_zone() -> None:
    hours = SendingHours(start=22, end=6, time_zone="Europe/Berlin", property="zone")
    assert hours.is_open(None, NOON.replace(hour=21))
    assert not hours.is_open(None, NOON)
    assert hours.is_open("asia/tokyo", NOON.replace(hour=14))
    assert next_quarter(NOON.replace(minute=14, second=59)) == timedelta(seconds=1)
    assert next_quarter(NOON) == timedelta(minutes=15)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"canary": {"percent": 0, "minutes": 1}}, "plan.canary.percent"),
    ({"canary": {"percent": 51, "minutes": 1}}, "plan.canary.percent"),
    ({"canary": {"percent": 5, "minutes": 10081}}, "plan.canary.minutes"),
    ({"per_hour": 0}, "plan.per_hour"),
    ({"per_hour": "5"}, "plan.per_hour"),
    ({"hours": {**HARBOR, "start": 24}}, "plan.hours.start"),
    ({"hours": {**HARBOR, "end": 9}}, "hours.end"),
    ({"hours": {**HARBOR, "time_zone": "Harbor/Pier"}}, "plan.hours.time_zone"),
    ({"ab_test": {"variants": [{}], "percent": 9, "winner_by": "opens", "minutes": 9}}, "variants"),
    ({"ab_test": {"variants": [{}] * 5, "percent": 9, "winner_by": "opens", "minutes": 9}}, "variants"),
    ({"ab_test": {"variants": [{}, {"subject": "a\nb"}], "percent": 9, "winner_by": "opens"}}, "subject"),
    ({"ab_test": {"variants": [{}, {}], "percent": 9, "winner_by": "luck", "minutes": 9}}, "winner_by"),
]


async def test_plans_have_bounds_and_belong_to_drafts_of_their_team(pillarbox: World) -> None:
    team, other = await pillarbox.team(), await pillarbox.team()
    for plan, field in WRONG:
        answer = await team.post(
            "/broadcasts", {"segment_id": str(await a_segment(team)), **BODY, "plan": plan}
        )
        assert answer.status_code == 422, (plan, answer.text)
        assert field in answer.json()["message"], answer.text
    broadcast_id = await made(team)
    url = f"/broadcasts/{broadcast_id}"
    nothing = {"canary": None, "per_hour": None, "hours": None, "ab_test": None}
    empty = {"object": "broadcast_plan", "broadcast_id": broadcast_id, **nothing}
    first = (await team.get(f"{url}/plan")).json()
    assert first == {**empty, "revision": first["revision"]}
    plan = {**nothing, "canary": {"percent": 5, "minutes": 30}, "hours": {**HARBOR, "property": None}}
    answer = await team.call("PUT", f"{url}/plan", plan)
    assert answer.json() == {**empty, **plan, "revision": answer.json()["revision"]}
    copy = (await team.post(f"{url}/duplicate")).json()["id"]
    assert (await team.get(f"/broadcasts/{copy}/plan")).json()["canary"] == plan["canary"]
    for method, path, body in (
        ("GET", "plan", None),
        ("PUT", "plan", plan),
        ("GET", "progress", None),
        ("GET", "audience", None),
        ("POST", "pause", {}),
        ("POST", "resume", {}),
        ("POST", "winner", {"variant": 1}),
    ):
        answer = await other.call(method, f"{url}/{path}", body)
        assert error(answer) == (404, "not_found", "Broadcast not found"), path
    assert (await team.call("PUT", f"{url}/plan", {})).json() == first
    await sent(team, broadcast_id)
    assert error(await team.call("PUT", f"{url}/plan", plan))[0] == 403
    assert (await team.post(f"{url}/pause", {"reason": "A typo."})).status_code == 200
    found = await progress(team, broadcast_id)
    assert (found["status"], found["reason"]) == ("queued", "A typo.")


TEST: dict[str, Any] = {
    "variants": [{}, {"subject": "Low"}],
    "percent": 20,
    "winner_by": "opens",
    "minutes": 60,
}


async def test_two_people_who_change_a_plan_do_not_lose_what_the_other_did(pillarbox: World) -> None:
    team = await pillarbox.team()
    url = f"/broadcasts/{await made(team)}/plan"
    first = (await team.get(url)).json()
    answer = await team.call("PUT", url, {"per_hour": 60, "revision": first["revision"]})
    assert (answer.status_code, answer.json()["revision"] == first["revision"]) == (200, False)
    refused = await team.call("PUT", url, {"ab_test": TEST, "revision": first["revision"]})
    assert error(refused)[:2] == (409, "conflict")
    second = answer.json()
    answer = await team.call("PUT", url, {"per_hour": 60, "ab_test": TEST, "revision": second["revision"]})
    assert answer.status_code == 200
    # Bodies are bounded together, as those of a broadcast.
    large = {**TEST, "variants": [{}, {"html": "h" * (MOST_BODY // 2), "text": "t" * (MOST_BODY // 2 + 1)}]}
    assert error(await team.call("PUT", url, {"ab_test": large}))[0] == 422
    # A variant belongs to what the revision stands for.
    test = {**TEST, "variants": [{}, {"subject": "Ebb"}]}
    other = (await team.call("PUT", url, {"per_hour": 60, "ab_test": test})).json()
    assert other["revision"] != answer.json()["revision"]


async def test_a_plan_is_read_as_a_whole_while_it_is_replaced(
    pillarbox: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test without variants would have no winner, and its broadcast no end."""
    team = await pillarbox.team()
    broadcast_id = await made(team, plan={"ab_test": TEST})
    has_removed = False

    def then_removed(before: Any) -> Any:
        async def called(self: Any, query: str, *args: Any, **more: Any) -> Any:
            nonlocal has_removed
            found = await before(self, query, *args, **more)
            if "FROM broadcast_plans" in query and not has_removed:
                has_removed = True
                removing = asyncio.create_task(team.call("PUT", f"/broadcasts/{broadcast_id}/plan", {}))
                await asyncio.wait([removing], timeout=0.3)
            return found

        return called

    for name in ("fetch", "fetchrow"):
        monkeypatch.setattr(asyncpg.Connection, name, then_removed(getattr(asyncpg.Connection, name)))
    copy = (await team.post(f"/broadcasts/{broadcast_id}/duplicate")).json()["id"]
    monkeypatch.undo()
    assert has_removed
    plan = (await team.get(f"/broadcasts/{copy}/plan")).json()
    assert [one["subject"] for one in plan["ab_test"]["variants"]] == [None, "Low"]


def test_placeholders_of_large_bodies_are_counted_at_once() -> None:
    began = time.process_time()
    assert not has_too_many("{{{a" * 2_000_000)
    assert has_too_many("{{{a}}}" * 1_000_000)
    assert not has_too_many("{{{a}}}" * 1000)
    assert has_too_many("{{{a}}}" * 1001)
    assert time.process_time() - began < 0.5


BODY = {"from": "a@harbor.example", "subject": "x", "text": "x"}


async def test_the_audience_says_who_is_left_out_and_why(pillarbox: World) -> None:
    team = await pillarbox.team()
    segment = str(await a_segment(team))
    for name in ("ada", "bo", "cy", "di"):
        new = {"email": f"{name}@quay.example", "segments": [{"id": segment}], "unsubscribed": name == "bo"}
        assert (await team.post("/contacts", new)).status_code == 201
    topic = {"name": "Tides", "default_subscription": "opt_in"}
    topic_id = (await team.post("/topics", topic)).json()["id"]
    choice = {"topics": [{"id": topic_id, "subscription": "opt_out"}]}
    assert (await team.call("PATCH", "/contacts/cy@quay.example/topics", choice)).status_code == 200
    for name in ("bo", "cy", "di"):
        await team.post("/suppressions", {"email": f"{name}@quay.example"})
    broadcast_id = await made(team, segment, topic_id=topic_id)
    answer = (await team.get(f"/broadcasts/{broadcast_id}/audience")).json()
    assert answer == {
        "object": "broadcast_audience",
        "broadcast_id": broadcast_id,
        "members": 4,
        "unsubscribed": 1,
        "topic_opt_out": 1,
        "suppressed": 1,
        "recipients": 1,
    }
