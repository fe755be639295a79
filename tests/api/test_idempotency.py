"""`Idempotency-Key` of emails and batches (conventions section 9, contract decision 26, API-05)."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from kit.client import error
from kit.clock import ManualClock
from kit.dumps import counts
from kit.manual_world import clock_of, manual_world
from kit.world import Team, World, mail, world
from pillarbox.domains.senders import Senders

REPLAYED = "idempotent-replayed"
MISMATCH = (409, "invalid_idempotent_request")
RUNNING = (409, "concurrent_idempotent_requests")
DAY = timedelta(hours=24)


async def send(
    team: Team, key: str, body: Any = None, path: str = "/emails", **headers: str
) -> httpx.Response:
    given = {"idempotency-key": key, **{name.replace("_", "-"): text for name, text in headers.items()}}
    return await team.http.post(path, json=mail() if body is None else body, headers=given)


async def emails(pillarbox: World) -> int:
    found: int = await pillarbox.pool.fetchval("SELECT count(*) FROM emails")
    return found


async def test_a_repeat_gets_the_same_bytes_and_sends_nothing(pillarbox: World) -> None:
    team = await pillarbox.team()
    first = await send(team, "k")
    before = await counts(pillarbox.pool)
    assert (first.status_code, REPLAYED in first.headers) == (200, False)
    for _ in range(3):
        again = await send(team, "k")
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers[REPLAYED] == "true"
        assert again.headers["content-type"] == first.headers["content-type"]
    assert await counts(pillarbox.pool) == before
    reordered = dict(reversed(mail().items()))
    spaced = json.dumps(reordered, indent=3, ensure_ascii=True).encode()
    given = {"idempotency-key": "k", "content-type": "text/plain"}
    same = await team.http.post("/emails", content=spaced, headers=given)
    assert (same.content, same.headers[REPLAYED]) == (first.content, "true")


async def test_another_body_under_the_same_key_is_refused(pillarbox: World) -> None:
    team = await pillarbox.team()
    first = await send(team, "k")
    for body in (
        mail(subject="Other"),
        mail(unknown=1),
        mail(to=["ada@quay.example", "b@quay.example"]),
        {},
    ):
        status, name, _ = error(await send(team, "k", body))
        assert (status, name) == MISMATCH
    assert await emails(pillarbox) == 1
    assert (await send(team, "k")).content == first.content


async def test_what_a_key_covers(pillarbox: World) -> None:
    """Scope: team, method and canonical path; whichever key of the team, whichever alias."""
    team, other = await pillarbox.team(), await pillarbox.team("Other")
    sender = team.using(await team.key(permission="sending_access"))
    first = await send(team, "k")
    for path in ("/email", "/emails/sending", "/email/sending", "/emails/"):
        assert (await send(sender, "k", path=path)).content == first.content
    batch = await send(team, "k", [mail()], "/emails/batch")
    assert (batch.status_code, REPLAYED in batch.headers) == (200, False)
    theirs = await send(other, "k")
    assert theirs.status_code == 200
    assert REPLAYED not in theirs.headers
    assert await emails(pillarbox) == 3
    plain = [(await team.post("/emails", mail())).json()["id"] for _ in range(2)]
    assert plain[0] != plain[1]


async def test_the_key_is_ignored_on_other_routes(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = [await send(team, "k", {"name": name}, "/api-keys") for name in ("one", "one", "two")]
    assert [answer.status_code for answer in made] == [201] * 3
    assert len({answer.json()["id"] for answer in made}) == 3
    assert (await send(team, "", {"name": "three"}, "/api-keys")).status_code == 201


async def test_the_syntax_of_a_key(pillarbox: World) -> None:
    """1 to 256 printable ASCII characters, compared byte by byte, checked before the body is parsed."""
    team = await pillarbox.team()
    for wrong in ("", "k" * 257, "kéy", "a\tb"):
        given = [(b"idempotency-key", wrong.encode("utf-8"))]
        answer = await team.http.post("/emails", content=b"{", headers=given)
        assert error(answer)[:2] == (400, "invalid_idempotency_key"), wrong
    ids = set()
    for right in ("k", "K", "k" * 256, "a b", "~!@#$%^&*()", "../x?y=z", "%20", '"k"'):
        ids.add((await send(team, right)).json()["id"])
    assert len(ids) == 8
    assert await emails(pillarbox) == 8


async def test_an_error_releases_the_key(database_url: str, tmp_path: Path) -> None:
    """Only 2xx answers are kept: after a 4xx the key may be used with any body."""
    async with manual_world(database_url, tmp_path, require_verified_domain="always") as pillarbox:
        team = await pillarbox.team()
        refused: list[Any] = [{}, mail(), mail(topic_id="x"), [], mail(html=None, template={"id": "x"})]
        for body in refused:
            assert (await send(team, "k", body)).status_code in (403, 404, 422)
            strict = await send(team, "k", [body], "/emails/batch")
            assert strict.status_code in (403, 404, 422)
        given = {"idempotency-key": "k"}
        assert (await team.http.post("/emails", content=b"{", headers=given)).status_code == 400
        await team.domain()
        done = await send(team, "k")
        assert (done.status_code, REPLAYED in done.headers) == (200, False)
        assert (await send(team, "k", mail(subject="x"))).status_code == 409


async def test_twenty_equal_requests_at_once_make_one_email(running: World) -> None:
    team = await running.team()
    answers = await asyncio.gather(*(send(team, "k") for _ in range(20)))
    _one_answer(answers)
    assert await emails(running) == 1
    other = await asyncio.gather(send(team, "m"), send(team, "m", mail(subject="x")))
    assert sorted(answer.status_code for answer in other) == [200, 409]
    assert await emails(running) == 2


async def test_two_processes_race_on_one_key(database_url: str, tmp_path: Path) -> None:
    """Two processes on one database: whoever commits first answers for both, in twenty rounds."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(world(database_url, tmp_path))
        second = await stack.enter_async_context(world(database_url, tmp_path))
        here = await first.team()
        there = Team(second, here.id, here.token, second.client(here.token))
        for round_ in range(20):
            key = f"round {round_}"
            _one_answer(await asyncio.gather(*(send(team, key) for team in (here, there) * 3)))
            assert await emails(first) == round_ + 1
            replay = await send(there, key)
            assert (replay.status_code, replay.headers[REPLAYED]) == (200, "true")
        mixed = await asyncio.gather(send(here, "x"), send(there, "x", mail(subject="Other")))
        assert sorted(answer.status_code for answer in mixed) == [200, 409]


async def test_a_key_in_flight_elsewhere_is_not_waited_for(pillarbox: World) -> None:
    """Contract decision 26: 409 at once, and the neighbours of the same commit are not held up."""
    team = await pillarbox.team()
    async with pillarbox.pool.acquire() as conn, conn.transaction():
        name = f"{team.id} POST /emails k"
        await conn.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name)
        held, free = await asyncio.gather(send(team, "k"), send(team, "other"))
        assert error(held)[:2] == RUNNING
        assert free.status_code == 200
    assert (await send(team, "k")).status_code == 200
    assert await emails(pillarbox) == 2


async def test_a_key_is_forgotten_after_a_day(pillarbox: World) -> None:
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    first = await send(team, "k")
    clock.advance(DAY - timedelta(seconds=1))
    assert (await send(team, "k")).content == first.content
    assert (await send(team, "k", mail(subject="x"))).status_code == 409
    clock.advance(1)
    second = await send(team, "k", mail(subject="x"))
    assert (second.status_code, REPLAYED in second.headers) == (200, False)
    assert second.json()["id"] != first.json()["id"]
    again = await send(team, "k", mail(subject="x"))
    assert (again.content, again.headers[REPLAYED]) == (second.content, "true")
    assert await emails(pillarbox) == 2


async def test_batches_are_kept_as_a_whole(pillarbox: World) -> None:
    """`errors` included, also when nothing was valid; the validation mode is part of the request."""
    team = await pillarbox.team()
    for key, items in (
        ("some", [mail(), mail(to="nobody"), mail()]),
        ("none", [mail(to="nobody"), {}]),
        ("all", [mail()]),
    ):
        first = await send(team, key, items, "/emails/batch", x_batch_validation="permissive")
        before = await counts(pillarbox.pool)
        again = await send(team, key, items, "/emails/batch", x_batch_validation="permissive")
        assert (again.status_code, again.content, again.headers.get(REPLAYED)) == (
            200,
            first.content,
            "true",
        )
        assert await counts(pillarbox.pool) == before
        strict = await send(team, key, items, "/emails/batch", x_batch_validation="strict")
        assert error(strict)[:2] == MISMATCH
        by_default = await send(team, key, items, "/emails/batch")
        assert error(by_default)[:2] == MISMATCH
    default = await send(team, "strict", [mail()], "/emails/batch")
    named = await send(team, "strict", [mail()], "/emails/batch", x_batch_validation="strict")
    assert named.content == default.content


async def test_a_replay_outlives_the_domain_but_not_the_key(database_url: str, tmp_path: Path) -> None:
    """No validation for a replay; authentication and permission still apply."""
    async with manual_world(database_url, tmp_path, require_verified_domain="always") as pillarbox:
        team = await pillarbox.team()
        domain = await team.domain()
        made = await team.post("/api-keys", {"name": "sender", "permission": "sending_access"})
        sender = team.using(made.json()["token"])
        first = await send(sender, "k")
        await pillarbox.pool.execute("DELETE FROM domains WHERE id = $1", domain)
        pillarbox.app.need(Senders).forget(team.id)
        assert (await send(sender, "fresh")).status_code == 403
        assert (await send(sender, "k")).content == first.content
        assert (await team.call("DELETE", f"/api-keys/{made.json()['id']}")).status_code == 200
        assert error(await send(sender, "k"))[:2] == (403, "invalid_api_key")


async def test_replays_count_against_the_rate_limit(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, rate_limit="3") as pillarbox:
        team = await pillarbox.team()
        codes = [(await send(team, "k")).status_code for _ in range(4)]
        assert codes == [200, 200, 200, 429]


async def test_a_replay_after_a_restart(database_url: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with manual_world(database_url, tmp_path, clock) as pillarbox:
        team = await pillarbox.team()
        first = await send(team, "k")
    async with manual_world(database_url, tmp_path, clock) as pillarbox:
        again = await send(Team(pillarbox, team.id, team.token, pillarbox.client(team.token)), "k")
        assert (again.content, again.headers[REPLAYED]) == (first.content, "true")
        assert await emails(pillarbox) == 1


def _one_answer(answers: list[httpx.Response]) -> None:
    """All succeeded with the same bytes, or were told that another one is running; at least one did."""
    good = [answer for answer in answers if answer.status_code == 200]
    assert len({answer.content for answer in good}) == 1
    assert sum(REPLAYED not in answer.headers for answer in good) == 1
    for answer in answers:
        if answer.status_code != 200:
            assert error(answer)[:2] == RUNNING
