"""Maintenance: everybody is put off, nothing is lost, and the queue goes on (conventions section 5: 503)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from kit.client import error
from kit.smtp_listener import dialog
from kit.submission import message_bytes, submission
from kit.world import World
from pillarbox.kernel.http import maintenance
from pillarbox.kernel.http.maintenance import Maintenance
from pillarbox.logs.writing import RequestLog


async def switch(pillarbox: World, *, on: bool, retry_after: int = 60) -> None:
    if on:
        await maintenance.begin(pillarbox.pool, retry_after)
    else:
        await maintenance.end(pillarbox.pool)
    await pillarbox.app.need(Maintenance).look()


async def test_requests_are_put_off(pillarbox: World) -> None:
    """Before anything is looked up: 503 with the time to wait, for good keys and bad ones, and no effect."""
    team = await pillarbox.team()
    email = await team.send(attachments=[{"filename": "a.txt", "content": "aGk="}])
    [link] = (await team.get(f"/emails/{email}/attachments")).json()["data"]
    await pillarbox.app.need(RequestLog).flush()
    rows = await pillarbox.pool.fetchval("SELECT count(*) FROM logs")
    await switch(pillarbox, on=True, retry_after=90)
    stranger = pillarbox.client("re_12345678_123456789012345678901234")
    for answer in (
        await team.get("/emails"),
        await team.post("/emails", {"from": "x"}),
        await team.post("/emails/batch", []),
        await stranger.get("/emails"),
        await team.http.post("/emails", content=parts()),
    ):
        assert error(answer)[:2] == (503, "service_unavailable")
        assert answer.headers["retry-after"] == "90"
    assert error(await team.get("/nowhere"))[0] == 404
    assert (await team.get("/health")).status_code == 200
    assert (await pillarbox.client(None).get(link["download_url"])).content == b"hi"
    await pillarbox.app.need(RequestLog).flush()
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM logs") == rows
    assert await pillarbox.turn() == 1
    await switch(pillarbox, on=False)
    assert (await team.email(email))["last_event"] == "delivered"


async def parts() -> AsyncIterator[bytes]:
    """A body whose length nobody says before."""
    yield b'{"from": "'
    yield b'x"}'


async def test_smtp_clients_are_put_off(database_url: str, tmp_path: Path) -> None:
    """451, so that programs and other mail servers keep their mail and try again."""
    async with (
        submission(database_url, tmp_path) as (team, listeners),
        listeners.program(team.token) as program,
        dialog(listeners.smtp) as other_server,
    ):
        await other_server.ask("EHLO mx.quay.example")
        await switch(team.world, on=True)
        for client in (program, other_server):
            assert str(await client.ask("MAIL FROM:<a@quay.example>")) == "451 4.3.2"
        await switch(team.world, on=False)
        assert (await program.send(message_bytes(), to=["ada@quay.example"])).code == 250
        assert (await other_server.ask("MAIL FROM:<a@quay.example>")).code == 250


async def test_every_process_finds_out(running: World) -> None:
    team = await running.team()
    for on, wanted in ((True, 503), (False, 200)):
        await (maintenance.begin if on else maintenance.end)(running.pool)
        async with asyncio.timeout(20):
            while (await team.get("/emails")).status_code != wanted:
                await asyncio.sleep(0.02)


async def test_what_was_known_is_kept_while_the_database_does_not_answer(pillarbox: World) -> None:
    await switch(pillarbox, on=True)
    await pillarbox.pool.execute("ALTER TABLE maintenance RENAME TO elsewhere")
    await pillarbox.app.need(Maintenance).look()
    assert pillarbox.app.need(Maintenance).is_on
