"""What is removed, and what is kept to know a stolen token by (oauth.md 9)."""

from __future__ import annotations

from datetime import timedelta

from kit.manual_world import clock_of
from kit.oauth_flow import Asking, allowed, ask, refresh, register
from kit.world import World
from pillarbox.oauth.collectors import KEPT, UNUSED_KEPT, OAuthCollector

DAY = 86400.0
SECOND = 1.0


async def collected(pillarbox: World) -> str:
    return await OAuthCollector(pillarbox.pool, pillarbox.clock).collect()


async def rows(pillarbox: World, table: str) -> int:
    return int(await pillarbox.pool.fetchval(f"SELECT count(*) FROM {table}"))


async def test_requests_and_codes_go_a_day_after_their_end(pillarbox: World) -> None:
    clock = clock_of(pillarbox)
    program = await allowed(pillarbox)
    unused: Asking = await ask(program.visit, program.client_id)
    await unused.approve()
    assert (await rows(pillarbox, "oauth_requests"), await rows(pillarbox, "oauth_codes")) == (2, 2)
    clock.advance(KEPT.total_seconds() + 599)
    assert (await collected(pillarbox)).startswith("0 requests, 0 codes")
    clock.advance(2)
    # The code that was used stays, for who presents it once more is a thief.
    assert (await collected(pillarbox)).startswith("2 requests, 1 codes, 0 refresh tokens")
    renewed = await refresh(pillarbox, program.client_id, program.tokens["refresh_token"])
    clock.advance(60 * DAY - SECOND)
    assert (await collected(pillarbox)).startswith("0 requests, 0 codes, 0 refresh tokens")
    again = await refresh(pillarbox, program.client_id, renewed.json()["refresh_token"])
    assert again.status_code == 200
    clock.advance(60 * DAY + 1)
    assert (await collected(pillarbox)).startswith("0 requests, 1 codes, 2 refresh tokens")
    clock.advance(DAY)
    assert (await collected(pillarbox)).startswith("0 requests, 0 codes, 1 refresh tokens")
    assert await rows(pillarbox, "oauth_grants") == 2, "what somebody allowed once stays to be read"


async def test_programs_that_nobody_let_in_go_after_90_days(pillarbox: World) -> None:
    clock = clock_of(pillarbox)
    program = await allowed(pillarbox)
    unused = (await register(pillarbox))["client_id"]
    clock.advance((UNUSED_KEPT - timedelta(seconds=1)).total_seconds())
    assert (await collected(pillarbox)).endswith("0 programs")
    clock.advance(2)
    assert (await collected(pillarbox)).endswith("1 programs")
    found = await pillarbox.pool.fetch("SELECT id::text, is_built_in FROM oauth_clients")
    assert {row["id"] for row in found if not row["is_built_in"]} == {program.client_id}
    assert len(found) == 2, "the built-in one stays"
    assert unused not in {row["id"] for row in found}


async def test_documents_go_a_day_after_their_end(pillarbox: World) -> None:
    clock = clock_of(pillarbox)
    now = clock.now()
    for table, column, value in (
        ("oauth_documents", "document", "'{}'"),
        ("oauth_logos", "media, octets", "'image/png', ''"),
    ):
        await pillarbox.pool.execute(
            f"INSERT INTO {table} (hash, url, {column}, fetched_at, expires_at)"
            f" VALUES ('', 'https://quill.example/x', {value}, $1, $1)",
            now,
        )
    assert "0 documents, 0 logos" in await collected(pillarbox)
    clock.advance(KEPT.total_seconds() + 1)
    assert "1 documents, 1 logos" in await collected(pillarbox)
