"""The log of requests: what is recorded, and how it is shown (logs.md)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx

from kit.client import error
from kit.manual_world import clock_of, manual_world
from kit.world import Team, World, mail
from pillarbox.logs.entries import MOST
from pillarbox.logs.writing import RequestLog

LISTED = ["id", "created_at", "endpoint", "method", "response_status", "user_agent"]
SINGLE = ["object", *LISTED, "request_body", "response_body"]
INSTANT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")
HTML = "<p>" + "Ready. " * 30 + "</p>"
TEXT = "Ready. " * 40


async def listed(team: Team, query: str = "") -> list[dict[str, Any]]:
    """The log of the team, with the reads that wait to be written."""
    await team.world.app.need(RequestLog).flush()
    answer = await team.get(f"/logs{query}")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["data"])


async def logged(team: Team, answer: httpx.Response) -> dict[str, Any]:
    """The row of the request that was answered so."""
    await team.world.app.need(RequestLog).flush()
    found = await team.get(f"/logs/{answer.headers['x-request-id']}")
    assert found.status_code == 200, found.text
    row: dict[str, Any] = found.json()
    assert list(row) == SINGLE
    assert row["response_status"] == answer.status_code
    assert row["id"] == answer.headers["x-request-id"]
    return row


async def bodies(team: Team, answer: httpx.Response) -> tuple[Any, Any]:
    row = await logged(team, answer)
    return row["request_body"], row["response_body"]


async def test_what_is_recorded(database_url: str, tmp_path: Path) -> None:
    """Every authenticated request, whatever its answer; the id is the answer's x-request-id."""
    async with manual_world(database_url, tmp_path, rate_limit="100") as pillarbox:
        team = await pillarbox.team()
        sender = team.using(await team.key(permission="sending_access"))
        await pillarbox.pool.execute("ALTER TABLE received_emails RENAME TO elsewhere")
        answers = [
            await team.get("/emails?limit=3"),
            await team.http.head("/emails"),
            await team.get(f"/emails/{uuid4()}"),
            await team.get("/emails/nothing"),
            await team.post("/api-keys", {"name": "x"}),
            await team.post("/email", {"from": "x"}),
            await team.post("/emails/"),
            await team.http.request("DELETE", f"/domains/{uuid4()}"),
            await sender.get("/domains"),
            await team.get("/emails/receiving"),
            await team.post("/domains", {"name": "harbor.example"}),
            await team.post("/domains", {"name": "harbor.example"}),
        ]
        await pillarbox.pool.execute("UPDATE teams SET rate_limit = 1")
        clock_of(pillarbox).advance(1.0)
        answers += [await team.get("/emails"), await team.get("/emails"), await team.post("/api-keys", {})]
        assert [a.status_code for a in answers] == [
            *(200, 200, 404, 422, 201, 422, 422, 404, 401, 500, 201, 403, 200, 429, 429)
        ]
        await pillarbox.pool.execute("UPDATE teams SET rate_limit = 0")
        clock_of(pillarbox).advance(1.0)
        found = await listed(team)
        assert [row["id"] for row in found][: len(answers)] == [
            a.headers["x-request-id"] for a in reversed(answers)
        ]
        assert [(row["method"], row["endpoint"]) for row in found][::-1][-15:-9] == [
            ("GET", "/emails"),
            ("HEAD", "/emails"),
            ("GET", answers[2].url.path),
            ("GET", "/emails/nothing"),
            ("POST", "/api-keys"),
            ("POST", "/email"),
        ]
        assert (await logged(team, answers[1]))["response_body"] is None
        assert (await bodies(team, answers[5]))[1] == answers[5].json()
        assert (await logged(team, answers[9]))["response_body"]["statusCode"] == 500


async def test_what_is_not_recorded(pillarbox: World) -> None:
    """No team is known, or nobody asked for anything; and the log itself."""
    team = await pillarbox.team()
    for refused in (pillarbox.client(None), pillarbox.client("re_12345678_123456789012345678901234")):
        assert (await refused.get("/emails")).status_code in (401, 403)
    assert (await team.get("/logs")).status_code == 200
    assert (await team.get(f"/logs/{uuid4()}")).status_code == 404
    assert (await team.get("/logs?limit=0")).status_code == 422
    assert (await team.http.options("/emails")).status_code == 204
    assert (await team.get("/health")).status_code == 200
    assert (await team.get("/nowhere")).status_code == 404
    assert (await team.http.put("/emails")).status_code == 405
    assert await listed(team) == []
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM logs") == 0


async def test_the_shape_of_rows(pillarbox: World) -> None:
    team = await pillarbox.team()
    request = team.http.build_request("GET", "/emails/a%2Fb%00%C3%A9?x=1")
    del request.headers["user-agent"]
    odd = await team.http.send(request)
    agent = await team.get("/usage", user_agent="resend-node:" + "6" * 600)
    rows = await listed(team)
    assert [list(row) for row in rows] == [LISTED, LISTED]
    assert all(INSTANT.fullmatch(row["created_at"]) for row in rows)
    assert rows[0]["user_agent"] == ("resend-node:" + "6" * 600)[:512]
    assert rows[1]["user_agent"] is None
    assert rows[1]["endpoint"] == "/emails/a/b\ufffdé"
    assert (await logged(team, odd))["object"] == "log"
    assert (await logged(team, agent))["endpoint"] == "/usage"


async def test_bodies(pillarbox: World) -> None:
    """None, empty, unreadable, too large, of another form; and the error's own shape nested in the answer."""
    team = await pillarbox.team()
    none = await team.http.post("/emails")
    empty = await team.http.post("/emails", content=b"{}")
    ignored = await team.http.request("GET", "/emails", content=b"{}")
    broken = await team.http.post("/emails", content=b'{"from": ')
    form = await team.http.post("/emails", files={"file": b"x"})
    array = await team.post("/emails", [1, "two", {"three": None}])
    assert (await bodies(team, none))[0] is None
    assert (await bodies(team, empty))[0] == {}
    assert (await bodies(team, ignored))[0] is None
    assert (await bodies(team, broken))[0] == {"invalid_json": True}
    assert (await bodies(team, form))[0] is None
    assert await bodies(team, array) == ([1, "two", {"three": None}], array.json())
    row = await logged(team, broken)
    assert "statusCode" not in row
    assert row["response_body"] == broken.json()


async def test_bodies_over_256_kib_are_cut(pillarbox: World) -> None:
    """By their size without what is masked."""
    team = await pillarbox.team()
    just = mail(html=None, text="x" * (MOST - 110))
    over = mail(html="<p>" + "x" * MOST + "</p>")
    light = mail(attachments=[{"filename": "a.txt", "content": "QUFB" * (MOST // 2)}])
    assert len(httpx.Request("POST", "http://x", json=just).content) <= MOST
    size = len(httpx.Request("POST", "http://x", json=over).content)
    assert (await bodies(team, await team.post("/emails", just)))[0] == just
    sent = await team.post("/emails", over)
    assert (await bodies(team, sent))[0] == {"truncated": True, "size": size}
    numbers = await team.http.post("/emails", content=b'{"x":[' + b"1e15," * 35_000 + b"1]}")
    assert list((await bodies(team, numbers))[0]) == ["truncated", "size"]
    light["attachments"] = [{"filename": "a.txt", "content": "[redacted]"}]
    again = mail(attachments=[{"filename": "a.txt", "content": "QUFB" * (MOST // 2)}])
    assert (await bodies(team, await team.post("/emails", again)))[0] == light
    read = await team.get(f"/emails/{sent.json()['id']}")
    assert (await bodies(team, read))[1] == {"truncated": True, "size": len(read.content)}
    hours = await team.get("/emails/metrics?start_date=2026-01-01&granularity=hourly&dimensions=period")
    assert len(hours.content) > MOST
    assert (await bodies(team, hours))[1] == {"truncated": True, "size": len(hours.content)}


async def test_no_secret_is_written_down(pillarbox: World) -> None:
    """Each value of the redaction row of logs.md section 3, looked for in the whole table."""
    team = await pillarbox.team()
    secret = "cGxhbnRlZC1zZWNyZXQ="
    key = await team.post("/api-keys", {"name": "x"})
    wanted = {"endpoint": "https://quay.example/in", "events": ["email.sent"]}
    hook = await team.post("/webhooks", wanted)
    shown = await team.get(f"/webhooks/{hook.json()['id']}")
    files = [{"filename": "a.txt", "content": secret}, {"filename": "b.txt", "content": [112, 1]}]
    email = await team.post("/emails", mail(attachments=files))
    refused = await team.post("/emails", mail(to="nobody", attachments=files))
    batch = await team.post("/emails/batch", [mail(attachments=files)])
    links = await team.get(f"/emails/{email.json()['id']}/attachments")
    share = await team.post(f"/emails/{email.json()['id']}/share", {})
    misplaced: list[Any] = [
        {"attachments": {"content": secret}},
        {"attachments": [[{"content": secret}]]},
        {"email": mail(attachments=files)},
        {"emails": [mail(attachments=files)]},
        [[mail(attachments=files)]],
    ]
    for body in misplaced:
        for path in ("/emails", "/emails/batch"):
            assert (await team.post(path, body)).status_code == 422
    strange = await team.post("/api-keys", {"name": "y", "client_secret": secret, "token": None})
    assert [a.status_code for a in (refused, batch, strange)] == [422, 422, 201]
    planted = [
        key.json()["token"],
        hook.json()["signing_secret"],
        shown.json()["signing_secret"],
        secret,
        "112,1",
        *(item["download_url"] for item in links.json()["data"]),
        share.json()["url"].partition("?")[2],
        team.token,
    ]
    await pillarbox.app.need(RequestLog).flush()
    table = "\n".join(map(str, await pillarbox.pool.fetch("SELECT logs::text FROM logs")))
    assert [text for text in planted if text in table] == []
    assert (await bodies(team, key))[1]["token"] == "[redacted]"
    assert (await bodies(team, shown))[1]["signing_secret"] == "[redacted]"
    assert [a["content"] for a in (await bodies(team, refused))[0]["attachments"]] == ["[redacted]"] * 2
    assert {item["download_url"] for item in (await bodies(team, links))[1]["data"]} == {"[redacted]"}
    assert (await bodies(team, share))[1]["url"].endswith("/shared?[redacted]")
    assert (await bodies(team, strange))[0] == {"name": "y", "client_secret": "[redacted]", "token": None}


async def test_bodies_of_emails_are_stored_once(pillarbox: World) -> None:
    """The log shows what was sent, and has no copy of what the email has."""
    team = await pillarbox.team()
    single = mail(html=HTML, text=TEXT, headers={"X-Kind": "berth"}, tags=[{"name": "a", "value": "b"}])
    many = [mail(html=HTML + "1"), mail(html=None, text=TEXT + "2"), mail(html="short"), single]
    permissive = [mail(html=HTML + "3"), mail(to="nobody", html=HTML + "4", text=3)]
    one = await team.post("/emails", single)
    batch = await team.post("/emails/batch", many)
    mixed = await team.post("/emails/batch", permissive, x_batch_validation="permissive")
    assert [a.status_code for a in (one, batch, mixed)] == [200] * 3
    assert await bodies(team, one) == (single, one.json())
    assert await bodies(team, batch) == (many, batch.json())
    assert await bodies(team, mixed) == (permissive, mixed.json())
    copies = "SELECT count(*) FROM logs WHERE refers AND request_body::text LIKE '%Ready. %'"
    assert await pillarbox.pool.fetchval(copies) == 0
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM logs WHERE refers") == 2
    await pillarbox.pool.execute("UPDATE contents SET html = NULL, text = NULL")
    gone = {**single, "html": "[removed]", "text": "[removed]"}
    assert await bodies(team, one) == (gone, one.json())


SAME_COMMIT = """
    SELECT l.xmin = x.xmin FROM logs l, {table} x WHERE l.id = $1 AND l.team_id = x.team_id AND x.id = $2
"""


async def test_the_row_of_a_write_is_in_the_commit_of_the_write(pillarbox: World) -> None:
    """Contract decision 34, seen by the transaction that made both rows."""
    team = await pillarbox.team()

    async def is_one(answer: httpx.Response, table: str, made: str) -> bool:
        assert answer.status_code < 300, answer.text
        sql = SAME_COMMIT.format(table=table)
        return bool(await pillarbox.pool.fetchval(sql, UUID(answer.headers["x-request-id"]), UUID(made)))

    email = await team.post("/emails", mail(scheduled_at="in 1 hour"))
    assert await is_one(email, "emails", email.json()["id"])
    keyed = await team.post("/emails", mail(), idempotency_key="once")
    assert await is_one(keyed, "emails", keyed.json()["id"])
    batch = await team.post("/emails/batch", [mail(), mail()])
    assert await is_one(batch, "emails", batch.json()["data"][1]["id"])
    moved = await team.call("PATCH", f"/emails/{email.json()['id']}", {"scheduled_at": "in 2 hours"})
    assert await is_one(moved, "emails", email.json()["id"])
    canceled = await team.post(f"/emails/{email.json()['id']}/cancel")
    assert await is_one(canceled, "emails", email.json()["id"])
    key = await team.post("/api-keys", {"name": "x"})
    assert await is_one(key, "api_keys", key.json()["id"])
    domain = await team.post("/domains", {"name": "harbor.example"})
    assert await is_one(domain, "domains", domain.json()["id"])
    changed = await team.call("PATCH", f"/domains/{domain.json()['id']}", {"open_tracking": True})
    assert await is_one(changed, "domains", domain.json()["id"])


async def test_a_write_without_its_log_row_does_not_happen(pillarbox: World) -> None:
    team = await pillarbox.team()
    key = (await team.post("/api-keys", {"name": "x"})).json()["id"]
    domain = (await team.post("/domains", {"name": "harbor.example"})).json()["id"]
    before = await counted(pillarbox)
    await pillarbox.pool.execute("ALTER TABLE logs RENAME TO elsewhere")
    for answer in (
        await team.post("/emails", mail()),
        await team.post("/emails/batch", [mail()]),
        await team.post("/api-keys", {"name": "y"}),
        await team.call("DELETE", f"/api-keys/{key}"),
        await team.post("/domains", {"name": "quay.example"}),
        await team.call("DELETE", f"/domains/{domain}"),
    ):
        assert error(answer)[:2] == (500, "application_error")
    assert await counted(pillarbox) == before
    assert (await team.get("/emails")).status_code == 200


async def counted(pillarbox: World) -> list[int]:
    return [
        await pillarbox.pool.fetchval(f"SELECT count(*) FROM {name}")
        for name in ("emails", "deliveries", "api_keys", "domains")
    ]


async def test_a_refused_write_is_there_with_its_answer(pillarbox: World) -> None:
    """In a transaction of its own, and nothing has to be waited for."""
    team = await pillarbox.team()
    refused = await team.post("/emails", mail(to="nobody"))
    row = await team.get(f"/logs/{refused.headers['x-request-id']}")
    assert row.json()["request_body"] == mail(to="nobody")
    assert row.json()["response_body"] == refused.json()


async def test_a_replay_is_a_row_of_its_own(pillarbox: World) -> None:
    team = await pillarbox.team()
    first = await team.post("/emails", mail(html=HTML), idempotency_key="k")
    again = await team.post("/emails", mail(html=HTML), idempotency_key="k")
    other = await team.post("/emails", mail(), idempotency_key="k")
    assert again.headers["idempotent-replayed"] == "true"
    assert await bodies(team, first) == await bodies(team, again) == (mail(html=HTML), first.json())
    assert (await logged(team, other))["response_status"] == 409
    assert len(await listed(team)) == 3


async def test_reads_are_given_up_first(pillarbox: World) -> None:
    """Under pressure their rows are dropped, and memory is bounded; writes keep theirs."""
    team = await pillarbox.team()
    await team.send(html="x" * 900_000)
    [email] = (await team.get("/emails")).json()["data"]
    answers = [await team.get(f"/emails/{email['id']}") for _ in range(8)]
    refused = await team.post("/emails", {})
    rows = {row["id"] for row in await listed(team)}
    held = [a for a in answers if a.headers["x-request-id"] in rows]
    assert 0 < len(held) < len(answers)
    assert refused.headers["x-request-id"] in rows
    later = await team.get("/emails")
    assert (await logged(team, later))["response_status"] == 200


async def test_reads_show_up_within_a_second(running: World) -> None:
    """With the loops that a server runs."""
    team = await running.team()
    answer = await team.get("/emails")
    async with asyncio.timeout(10):
        while (await team.get(f"/logs/{answer.headers['x-request-id']}")).status_code != 200:
            await asyncio.sleep(0.02)
