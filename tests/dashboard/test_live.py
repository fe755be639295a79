"""The stream that tells a page of changes."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, cast, get_args
from uuid import UUID

import asyncpg
import httpx
import pytest

from kit.automation_rows import an_automation, chain, step
from kit.automation_runs import run_of, sent, walk
from kit.manual_world import clock_of
from kit.people import SESSION, a_person, visit
from kit.query_plans import plan, rows_read
from kit.screens import a_received_email
from kit.webhooks import hook, publish
from kit.world import Team, World
from pillarbox.application import SLICES
from pillarbox.dashboard.frame.live import DIGESTS, MOST_OF_SESSION
from pillarbox.kernel.postgres.database import TeamDb

NUMBERED = "(lpad(to_hex(n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid"
FILLS = (
    f"""
    INSERT INTO logs (team_id, id, created_at, endpoint, method, response_status, refers)
    SELECT $1, {NUMBERED}, now(), '/', 'GET', 200, false
      FROM generate_series(1, $3::integer) AS n
     WHERE $2::uuid IS NOT NULL
    """,
    f"""
    INSERT INTO webhook_outcomes (team_id, webhook_id, event_id, kind, at, status)
    SELECT $1, $2, {NUMBERED}, 'x', now(), 'success' FROM generate_series(1, $3::integer) AS n
    """,
    f"""
    INSERT INTO received_emails (team_id, id, created_at, sender, to_list, subject, message_id, received_for,
                                 attachments, recipients, mail_from, client, spf, dkim, dmarc, size, complete)
    SELECT $1, {NUMBERED}, now(), 'a', '[]', 's', '', '[]', 0, '[]', '', '', '', '', '', 1, true
      FROM generate_series(1, $3::integer) AS n
     WHERE $2::uuid IS NOT NULL
    """,
    f"""
    INSERT INTO automation_runs (team_id, id, automation_id, version, epoch, event_id, event_name,
                                 trigger_key, contact_id, status, payload, created_at, completed_at)
    SELECT $1, {NUMBERED}, $2, 1, 0, {NUMBERED}, 'x', 'x', $2, v.status, '{{}}', now(),
           CASE WHEN v.status <> 'running' THEN now() - n * interval '1 second' END
      FROM generate_series(1, $3::integer) AS n,
           LATERAL (SELECT (ARRAY['running', 'completed', 'failed'])[n % 3 + 1] AS status) AS v
    """,
    f"""
    INSERT INTO automation_work (team_id, run_id, position, contact_id, due_at, waiting)
    SELECT $1, {NUMBERED}, 0, $2, now() + n * interval '1 second', true
      FROM generate_series(1, $3::integer) AS n
    """,
    f"""
    INSERT INTO timeline (team_id, id, email_id, at, kind)
    SELECT $1, {NUMBERED}, $2, now(), 'opened' FROM generate_series(1, $3::integer) AS n
    """,
    f"""
    INSERT INTO inboxes (team_id, id, name, email_address, domain_id, created_at, updated_at)
    SELECT $1, CASE n WHEN 0 THEN $2 ELSE {NUMBERED} END, 'x', n || '@harbor.example', $2, now(), now()
      FROM generate_series(0, $3::integer) AS n
    """,
    f"""
    INSERT INTO inbox_threads (team_id, id, inbox_id, folder, messages, inbound, unread, has_attachment,
                               last_message_id, received_at, purge_at, created_at)
    SELECT $1, CASE n WHEN 0 THEN $2 ELSE {NUMBERED} END, $2, v.folder, 2, 1 + n / 10 % 2, n / 5 % 2, false,
           $2, now() - n * interval '1 second', CASE WHEN v.folder = 'trash' THEN now() END, now()
      FROM generate_series(0, $3::integer) AS n,
           LATERAL (SELECT (ARRAY['inbox', 'archive', 'spam', 'sent', 'trash'])[n % 5 + 1] AS folder) AS v
    """,
)


async def a_stream(running: World, team: Team) -> tuple[httpx.AsyncClient, str]:
    """A client with the session of a member, and the address of the stream."""
    return await a_stream_of(running, team, "ada@harbor.example")


async def a_stream_of(running: World, team: Team, address: str) -> tuple[httpx.AsyncClient, str]:
    browser = visit(running)
    await browser.log_in(await a_person(team, address))
    client = running.client(None)
    client.headers["cookie"] = f"{SESSION}={browser.cookies[SESSION]}"
    return client, "/dashboard/live"


async def next_event(lines: object) -> str:
    """The name of the next event, comments left out."""
    async for line in lines:  # type: ignore[attr-defined]
        if line.startswith("event: "):
            return str(line.removeprefix("event: "))
    return "closed"


async def test_a_page_hears_of_a_new_email_within_two_seconds(running: World) -> None:
    team = await running.team()
    client, path = await a_stream(running, team)
    async with client.stream("GET", path) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.aiter_lines()
        assert await anext(lines) == ": no change"
        await team.send(to="ada@quay.example")
        assert await asyncio.wait_for(next_event(lines), 5) == "change"


async def test_other_teams_and_strangers_hear_nothing(running: World) -> None:
    team, other = await running.team(), await running.team("Quay")
    client, path = await a_stream(running, team)
    refused = await running.client(None).get(path)
    assert (refused.status_code, refused.headers["location"]) == (303, "/login")
    async with client.stream("GET", path) as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == ": no change"
        await other.send(to="ada@quay.example")
        try:
            heard = await asyncio.wait_for(next_event(lines), 2.5)
        except TimeoutError:
            heard = "nothing"
        assert heard == "nothing"


async def a_change(running: World, team: Team, kind: str) -> None:
    """Something happens to a thing of this kind."""
    if kind == "received":
        await a_received_email(team)
    elif kind == "webhooks":
        await running.pool.execute("UPDATE webhooks SET last_failure_at = now()")
    elif kind == "domains":
        await running.pool.execute("UPDATE domains SET verifying_since = now()")
    elif kind == "logs":
        await team.post("/contacts", {"email": "ada@quay.example"})
    else:
        await team.send(to="ada@quay.example")


@pytest.mark.parametrize("kind", ["emails", "received", "webhooks", "domains", "logs"])
async def test_a_page_hears_of_its_own_kind_alone(running: World, kind: str) -> None:
    team = await running.team()
    await team.domain()
    await hook(team, "email.bounced", endpoint="https://told.example/in")
    client, path = await a_stream(running, team)
    others = [other for other in ("emails", "received", "webhooks", "domains") if other not in (kind, "logs")]
    async with AsyncExitStack() as open_streams:
        lines = {}
        for name in (kind, *others):
            answer = await open_streams.enter_async_context(client.stream("GET", f"{path}?of={name}"))
            lines[name] = answer.aiter_lines()
            assert await anext(lines[name]) == ": no change"
        heard = {name: asyncio.create_task(next_event(lines[name])) for name in lines}
        await a_change(running, team, kind)
        assert await asyncio.wait_for(heard.pop(kind), 5) == "change"
        done, _ = await asyncio.wait(heard.values(), timeout=1.5)
        for task in heard.values():
            task.cancel()
        assert not done


async def test_a_page_of_one_thing_hears_of_that_one(running: World) -> None:
    team = await running.team()
    first, second = [await hook(team, "email.bounced", endpoint=f"https://{n}.example/in") for n in "ab"]
    email_id = await team.send(to="ada@quay.example", scheduled_at="in 2 hours")
    client, path = await a_stream(running, team)
    async with AsyncExitStack() as open_streams:
        heard = []
        for query in (f"webhooks&id={first.id}", f"webhooks&id={second.id}", f"emails&id={email_id}"):
            answer = await open_streams.enter_async_context(client.stream("GET", f"{path}?of={query}"))
            lines = answer.aiter_lines()
            assert await anext(lines) == ": no change"
            heard.append(asyncio.create_task(next_event(lines)))
        await publish(team, "email.bounced", email_id=email_id, subject="x", to=["ada@quay.example"])
        await running.pool.execute("DELETE FROM webhook_deliveries WHERE webhook_id = $1", UUID(second.id))
        await team.post(f"/emails/{email_id}/cancel")
        assert await asyncio.wait_for(heard[0], 5) == "change"
        assert await asyncio.wait_for(heard[2], 5) == "change"
        for task in heard:
            task.cancel()


async def test_a_stream_of_nothing_known_is_refused(running: World) -> None:
    team = await running.team()
    client, path = await a_stream(running, team)
    for query in ("of=secrets", "of=emails&id=7"):
        assert (await client.get(f"{path}?{query}")).status_code == 422


class StatementLog:
    """A connection that keeps what it was asked."""

    def __init__(self, conn: asyncpg.Connection) -> None:
        self.conn = conn
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    async def fetchval(self, sql: str, *args: Any) -> Any:
        self.asked.append((sql, args))
        return await self.conn.fetchval(sql, *args)


async def test_a_digest_reads_a_page(database_url: str) -> None:
    """However much there is, what tells of a change reads a hundred rows of each table."""
    team, webhook = UUID(int=1), UUID(int=2)
    conn = await asyncpg.connect(database_url)
    try:
        for fill in FILLS:
            await conn.execute(fill, team, webhook, 5_000)
        await conn.execute("VACUUM ANALYZE")
        assert await conn.fetchval("SELECT count(DISTINCT list_class) FROM inbox_threads") == 20
        for kind, digest in DIGESTS.items():
            for thing in (None, webhook):
                log = StatementLog(conn)
                await digest(TeamDb(cast(Any, log), team), thing)
                [(sql, args)] = log.asked
                assert max(rows_read(await plan(conn, sql, args))) <= 100, kind
    finally:
        await conn.close()


async def test_a_stream_tells_at_once_what_changed_since_the_page_was_drawn(running: World) -> None:
    team = await running.team()
    email_id = await team.send(to="ada@quay.example", scheduled_at="in 2 hours")
    client, path = await a_stream(running, team)
    seen = await DIGESTS["emails"](team.db, UUID(email_id))
    for digest, said in ((seen, ": no change"), (UUID(int=7), "event: change")):
        async with client.stream("GET", f"{path}?of=emails&id={email_id}&seen={digest}") as answer:
            assert await anext(answer.aiter_lines()) == said


async def test_one_session_takes_a_few_streams(running: World) -> None:
    team = await running.team()
    client, path = await a_stream(running, team)
    other, _ = await a_stream_of(running, team, "bo@harbor.example")
    async with AsyncExitStack() as open_streams:
        for _ in range(MOST_OF_SESSION):
            answer = await open_streams.enter_async_context(client.stream("GET", path))
            assert await anext(answer.aiter_lines()) == ": no change"
        assert (await client.get(path)).status_code == 503
        answer = await open_streams.enter_async_context(other.stream("GET", path))
        assert answer.status_code == 200


def test_the_api_document_names_each_kind_of_thing_that_a_page_may_show() -> None:
    [stream] = [route for one in SLICES for route in one.pages if route.path == "/dashboard/live"]
    assert set(get_args(stream.query["of"])) == DIGESTS.keys()


async def test_pages_of_an_automation_hear_of_its_runs(running: World) -> None:
    team = await running.team()
    first, other = [
        await an_automation(team, waiting_graph(name), name=name, status="enabled") for name in ("a", "b")
    ]
    client, path = await a_stream(running, team)
    async with AsyncExitStack() as open_streams:
        heard = []
        for query in ("", f"&id={first}", f"&id={other}"):
            answer = await open_streams.enter_async_context(
                client.stream("GET", f"{path}?of=automations{query}")
            )
            lines = answer.aiter_lines()
            assert await anext(lines) == ": no change"
            heard.append(asyncio.create_task(next_event(lines)))
        await sent(team, "a")
        assert await asyncio.wait_for(heard[0], 5) == "change"
        assert await asyncio.wait_for(heard[1], 5) == "change"
        await asyncio.sleep(1)
        assert not heard[2].done()
        heard[2].cancel()


async def test_a_run_and_its_automation_tell_of_each_step(pillarbox: World) -> None:
    team = await pillarbox.team()
    automation = await an_automation(team, waiting_graph("a"), status="enabled")
    await sent(team, "a")
    seen = set()
    for _ in range(3):
        await walk(pillarbox)
        run = (await run_of(team, automation))["id"]
        of_run = await DIGESTS["automation_runs"](team.db, UUID(run))
        seen |= {of_run, *[await DIGESTS["automations"](team.db, one) for one in (None, UUID(automation))]}
        clock_of(pillarbox).advance(timedelta(days=1, seconds=1))
    assert (await run_of(team, automation))["status"] == "running"
    await team.call("PATCH", f"/automations/{automation}", {"name": "Other"})
    seen.add(await DIGESTS["automations"](team.db, UUID(automation)))
    assert len(seen) == 10


def waiting_graph(event: str) -> dict[str, Any]:
    waits = [step(f"waits-{number}", "delay", duration="1 day") for number in range(4)]
    return chain(step("start", "trigger", event_name=event), *waits)
