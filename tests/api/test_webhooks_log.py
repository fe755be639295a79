"""The delivery log and replays (webhooks.md section 2)."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.client import error
from kit.manual_world import clock_of, manual_world
from kit.webhooks import Hook, hook, publish
from kit.world import World
from pillarbox.kernel.ids import Ids, tagged, untagged
from pillarbox.kernel.plugin import PeriodicJobs
from pillarbox.kernel.wire.instants import iso_style

EVENT = re.compile(r"msg_[0-9A-Za-z]{27}")
ATTEMPT = re.compile(r"atmpt_[0-9A-Za-z]{27}")
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
NIL = UUID(int=0)


async def several(hooked: Hook, count: int) -> list[str]:
    """So many events, the oldest first."""
    await publish(hooked.team, *["domain.updated"] * count)
    return [event["id"] for event in await hooked.events()]


async def statuses(hooked: Hook) -> list[str]:
    return [event["status"] for event in await hooked.events()]


def test_ids_of_the_log_keep_the_order_of_time_and_what_is_mistyped_is_none() -> None:
    ids = Ids(_Clock())
    made = [ids.new() for _ in range(200)]
    shown = [tagged("msg_", one) for one in made]
    assert shown == sorted(shown)
    assert all(EVENT.fullmatch(text) for text in shown)
    assert [untagged("msg_", text) for text in shown] == made
    text = shown[0]
    assert untagged("atmpt_", text) is None
    for at in range(4, len(text)):
        other = "1" if text[at] != "1" else "2"
        assert untagged("msg_", text[:at] + other + text[at + 1 :]) is None
    for wrong in ("", "msg_", text[4:], text + "0", text[:-1], text.replace("_", "-"), "msg_" + "z" * 27):
        assert untagged("msg_", wrong) is None
    assert untagged("msg_", "msg_" + "é" * 27) is None


class _Clock:
    def now(self) -> Any:
        from kit.clock import START

        return START


async def test_the_log_of_a_webhook(pillarbox: World) -> None:
    team = await pillarbox.team()
    made, other = await hook(team), await hook(team, "domain.deleted")
    ids = await several(made, 5)
    assert await other.events() == []
    listed = await made.get("/events")
    assert list(listed) == ["object", "has_more", "data"]
    assert list(listed["data"][0]) == ["id", "type", "created_at", "status"]
    assert [event["id"] for event in listed["data"]] == ids[::-1]
    assert all(EVENT.fullmatch(event["id"]) for event in listed["data"])
    assert all(ISO.fullmatch(event["created_at"]) for event in listed["data"])
    assert {event["status"] for event in listed["data"]} == {"pending"}


async def test_pages_of_the_log_hold_what_is_open_and_what_has_ended_in_one_order(pillarbox: World) -> None:
    """Contract decision 5: these lists take `before` too, and a malformed cursor is 422."""
    team = await pillarbox.team()
    made = await hook(team)
    ids = await several(made, 25)
    for at, event in enumerate(ids):
        if at % 3:
            await made.ends(event, "success" if at % 2 else "failed")
    assert len((await made.get("/events"))["data"]) == 20
    seen: list[str] = []
    path = "/events?limit=4"
    while True:
        page = await made.get(path)
        seen += [event["id"] for event in page["data"]]
        if not page["has_more"]:
            break
        path = f"/events?limit=4&after={seen[-1]}"
    assert seen == ids[::-1]
    back = await made.get(f"/events?limit=4&before={ids[3]}")
    assert [event["id"] for event in back["data"]] == ids[7:3:-1]
    assert back["has_more"] is True
    newest = await made.get(f"/events?limit=4&before={ids[-3]}")
    assert [event["id"] for event in newest["data"]] == ids[:-3:-1]
    assert newest["has_more"] is False
    for query in (
        "limit=0",
        "limit=101",
        "limit=ten",
        "after=msg_x",
        "before=0199a3c2-5f10-7b3e-9d44-0a6f2c1b7e90",
        f"after={ids[0]}&before={ids[1]}",
    ):
        answer = await team.get(f"{made.path}/events?{query}")
        assert error(answer)[:2] == (422, "validation_error"), query


async def test_an_event_shows_its_body_and_its_next_attempt(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team)
    await publish(team, "domain.updated", name="harbor.example", records=[])
    [listed] = await made.events()
    shown = await made.get(f"/events/{listed['id']}")
    assert list(shown) == ["object", "id", "type", "created_at", "status", "next_attempt_at", "payload"]
    assert shown["object"] == "webhook_event"
    assert {name: shown[name] for name in listed} == listed
    assert shown["next_attempt_at"] == listed["created_at"]
    assert shown["payload"] == {
        "type": "domain.updated",
        "created_at": listed["created_at"],
        "data": {"name": "harbor.example", "records": []},
    }
    due = clock_of(pillarbox).now() + timedelta(minutes=5)
    await made.fails(listed["id"], due)
    shown = await made.get(f"/events/{listed['id']}")
    assert (shown["status"], shown["next_attempt_at"]) == ("attempting", iso_style(due))
    await made.ends(listed["id"], "success")
    shown = await made.get(f"/events/{listed['id']}")
    assert (shown["status"], shown["next_attempt_at"]) == ("success", None)
    assert shown["payload"]["data"]["name"] == "harbor.example"


async def test_attempts_are_listed_newest_first(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team)
    event, other = await several(made, 2)
    for code, response in ((503, "busy"), (0, "timeout"), (200, "ok")):
        await made.attempt(event, code, response)
    listed = await made.get(f"/events/{event}/attempts")
    assert list(listed) == ["object", "has_more", "data"]
    assert [(item["http_status_code"], item["response"]) for item in listed["data"]] == [
        (200, "ok"),
        (0, "timeout"),
        (503, "busy"),
    ]
    assert list(listed["data"][0]) == ["id", "http_status_code", "response", "sent_at"]
    assert all(ATTEMPT.fullmatch(item["id"]) and ISO.fullmatch(item["sent_at"]) for item in listed["data"])
    newest, middle, oldest = [item["id"] for item in listed["data"]]
    page = await made.get(f"/events/{event}/attempts?limit=1&after={newest}")
    assert ([item["id"] for item in page["data"]], page["has_more"]) == ([middle], True)
    page = await made.get(f"/events/{event}/attempts?limit=5&before={oldest}")
    assert ([item["id"] for item in page["data"]], page["has_more"]) == ([newest, middle], False)
    assert (await made.get(f"/events/{other}/attempts"))["data"] == []
    for query in ("limit=0", f"after={event}", "before=atmpt_x"):
        answer = await team.get(f"{made.path}/events/{event}/attempts?{query}")
        assert error(answer)[:2] == (422, "validation_error"), query


async def test_events_of_others_and_of_nobody_are_unknown(pillarbox: World) -> None:
    team = await pillarbox.team()
    made, other = await hook(team), await hook(team, "domain.deleted")
    [event] = await several(made, 1)
    unknown = tagged("msg_", pillarbox.app.need(Ids).new())
    for path in (
        f"{other.path}/events/{event}",
        f"{made.path}/events/{unknown}",
        f"{made.path}/events/msg_x",
        f"{made.path}/events/0199a3c2-5f10-7b3e-9d44-0a6f2c1b7e90",
        f"{made.path}/events/{event.removeprefix('msg_')}",
    ):
        for method, below in (("GET", ""), ("POST", "/replay"), ("GET", "/attempts")):
            assert error(await team.call(method, path + below)) == (
                404,
                "not_found",
                "Webhook event not found",
            ), path


# Replay -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["pending", "attempting", "success", "failed"])
async def test_a_replay_is_one_attempt_more_and_leaves_the_schedule_alone(
    pillarbox: World, state: str
) -> None:
    team = await pillarbox.team()
    made = await hook(team)
    [event] = await several(made, 1)
    due = clock_of(pillarbox).now() + timedelta(hours=2)
    if state == "attempting":
        await made.fails(event, due)
    elif state != "pending":
        await made.ends(event, state)
    before = await made.get(f"/events/{event}")
    assert before["status"] == state
    scheduled = [dict(row) for row in await made.owed()]
    clock_of(pillarbox).advance(10)
    answer = await team.call("POST", f"{made.path}/events/{event}/replay")
    assert (answer.status_code, answer.json()) == (200, {"object": "webhook_event", "id": event})
    assert (await made.replay(event)).status_code == 200
    assert await made.get(f"/events/{event}") == before
    rows = [dict(row) for row in await made.owed()]
    assert [row for row in rows if row["replay"] == NIL] == scheduled
    replays = [row for row in rows if row["replay"] != NIL]
    assert len(replays) == 2
    for row in replays:
        assert tagged("msg_", row["event_id"]) == event
        assert (row["due_at"], row["owner"]) == (clock_of(pillarbox).now(), None)


async def test_a_disabled_webhook_replays_nothing(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team)
    [event] = await several(made, 1)
    await made.change(status="disabled")
    assert error(await made.replay(event))[:2] == (422, "validation_error")
    assert error(await made.replay("msg_x"))[:2] == (404, "not_found")
    assert all(row["replay"] == NIL for row in await made.owed())
    await made.change(status="enabled")
    assert (await made.replay(event)).status_code == 200


async def test_a_replay_of_what_was_ended_by_disabling_ends_it_for_good(pillarbox: World) -> None:
    """Its row leaves the queue, with what its body is made of, so that a success of the replay counts."""
    team = await pillarbox.team()
    made = await hook(team, "email.delivered")
    await team.send()
    await pillarbox.turn()
    [event] = [found["id"] for found in await made.events()]
    await made.change(status="disabled")
    await made.change(status="enabled")
    assert (await made.replay(event)).status_code == 200
    assert [row["replay"] == NIL for row in await made.owed()] == [False]
    assert await statuses(made) == ["failed"]
    shown = await made.get(f"/events/{event}")
    assert shown["payload"]["data"]["to"] == ["ada@quay.example"]
    assert (shown["status"], shown["next_attempt_at"]) == ("failed", None)


# Disabling ----------------------------------------------------------------------------------------


async def test_disabling_ends_what_is_open_and_enabling_brings_nothing_back(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team)
    pending, attempting, done = await several(made, 3)
    await made.fails(attempting, clock_of(pillarbox).now() + timedelta(minutes=30))
    await made.ends(done, "success")
    await made.change(status="disabled")
    assert await statuses(made) == ["failed", "failed", "success"]
    for event in (pending, attempting):
        assert (await made.get(f"/events/{event}"))["next_attempt_at"] is None
    await publish(team)
    assert len(await made.events()) == 3
    await made.change(status="enabled")
    assert await statuses(made) == ["failed", "failed", "success"]
    await publish(team)
    assert await statuses(made) == ["failed", "failed", "success", "pending"]
    epoch = await epoch_of(pillarbox, made)
    assert [row["epoch"] == epoch for row in await made.owed()] == [False, False, True]


async def test_disabling_twice_is_disabling_once(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team)
    await made.change(status="enabled")
    assert await epoch_of(pillarbox, made) == 0
    await made.change(status="disabled")
    await made.change(status="disabled", events=["domain.created"])
    assert await epoch_of(pillarbox, made) == 1


async def epoch_of(pillarbox: World, made: Hook) -> int:
    found: int = await pillarbox.pool.fetchval("SELECT epoch FROM webhooks WHERE id = $1", UUID(made.id))
    return found


async def test_narrowed_events_leave_what_was_created(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "domain.updated", "domain.created")
    await publish(team, "domain.updated", "domain.created")
    await made.change(events=["domain.created"])
    await publish(team, "domain.updated", "domain.created")
    assert await made.kinds() == ["domain.updated", "domain.created", "domain.created"]
    assert set(await statuses(made)) == {"pending"}


# Retention ----------------------------------------------------------------------------------------


async def test_the_log_is_kept_for_ninety_days(pillarbox: World) -> None:
    """DUR-15: hidden on the day, removed by the next round."""
    team = await pillarbox.team()
    made = await hook(team)
    old = await several(made, 3)
    await made.attempt(old[0], 200, "ok")
    for event in old:
        await made.ends(event, "success")
    clock_of(pillarbox).advance(timedelta(days=90) - timedelta(seconds=1))
    await publish(team)
    assert len(await made.events()) == 4
    clock_of(pillarbox).advance(2)
    [new] = await made.events()
    assert new["id"] not in old
    for below in ("", "/attempts"):
        assert (await team.get(f"{made.path}/events/{old[0]}{below}")).status_code == 404
    assert await collected(pillarbox) == "4 rows of the log, 3 events"
    assert await collected(pillarbox) == "0 rows of the log, 0 events"
    assert [event["id"] for event in await made.events()] == [new["id"]]
    await left(pillarbox, events=1, deliveries=1, outcomes=0, attempts=0)


async def test_what_is_open_stays_however_short_the_log_is_kept(database_url: str, tmp_path: Path) -> None:
    """The schedule takes 27 hours, the log is kept for 24: every delivery is decided first, and seen until
    then. What stays with it are its attempts, its body and what is younger."""
    async with manual_world(database_url, tmp_path, webhooks_retention_days="1") as pillarbox:
        team = await pillarbox.team()
        made, other = await hook(team), await hook(team, "domain.created")
        before, open_one, behind = await several(made, 3)
        payload = (await made.get(f"/events/{open_one}"))["payload"]
        for event in (before, behind):
            await made.attempt(event, 200, "ok")
            await made.ends(event, "success")
        await made.attempt(open_one, 500, "busy")
        await made.fails(open_one, clock_of(pillarbox).now() + timedelta(hours=27))
        clock_of(pillarbox).advance(timedelta(hours=25))
        await publish(team, "domain.created")
        assert await collected(pillarbox) == "2 rows of the log, 1 events"
        assert await collected(pillarbox) == "0 rows of the log, 0 events"
        await left(pillarbox, events=3, deliveries=2, outcomes=1, attempts=2)
        [shown] = await made.events()
        assert (shown["id"], shown["status"]) == (open_one, "attempting")
        for cursor in (f"after={behind}", f"before={before}"):
            assert (await made.get(f"/events?{cursor}"))["data"] == [shown]
        assert (await made.get(f"/events/{open_one}"))["payload"] == payload
        assert len((await made.get(f"/events/{open_one}/attempts"))["data"]) == 1
        assert (await team.get(f"{made.path}/events/{behind}")).status_code == 404
        await made.ends(open_one, "failed")
        assert await made.events() == []
        assert await collected(pillarbox) == "4 rows of the log, 2 events"
        await left(pillarbox, events=1, deliveries=1, outcomes=0, attempts=0)
        assert len(await other.events()) == 1


async def test_what_disabling_ended_goes_with_the_log(database_url: str, tmp_path: Path) -> None:
    """Also where no dispatcher ever meets it; it is not open."""
    async with manual_world(database_url, tmp_path, webhooks_retention_days="1") as pillarbox:
        made = await hook(await pillarbox.team())
        await several(made, 2)
        await made.change(status="disabled")
        await made.change(status="enabled")
        assert len(await made.events()) == 2
        clock_of(pillarbox).advance(timedelta(hours=25))
        assert await made.events() == []
        assert await collected(pillarbox) == "2 rows of the log, 2 events"


async def collected(pillarbox: World) -> str:
    """What the round that removes old rows says."""
    [collect] = [one for one in pillarbox.app.need(PeriodicJobs) if one.kind == "webhooks.retention"]
    return await collect.work()


async def left(pillarbox: World, **counts: int) -> None:
    """So many rows are in these tables."""
    found = {name: await pillarbox.pool.fetchval(f"SELECT count(*) FROM webhook_{name}") for name in counts}
    assert found == counts


async def test_the_log_is_kept_for_ever_when_the_operator_says_so(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, webhooks_retention_days="0") as pillarbox:
        team = await pillarbox.team()
        made = await hook(team)
        [event] = await several(made, 1)
        clock_of(pillarbox).advance(timedelta(days=1000))
        assert await collected(pillarbox) == "0 rows of the log, 0 events"
        assert (await made.get(f"/events/{event}"))["status"] == "pending"
