"""Changes of the suppression list at the same time (suppressions.md 6), on real connections."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import asyncpg

from kit.manual_world import manual_world
from kit.webhooks import Hook, hook
from kit.world import Team, World
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, TeamDb, transaction
from pillarbox.suppressions import changes
from pillarbox.suppressions.changes import SuppressionCause
from pillarbox.webhooks.publish import Publisher

KIM = "kim@orchard.example"

WAITING = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%suppressions%'
"""


async def waiting(pillarbox: World, count: int) -> None:
    """Return when so many statements wait for another one's rows."""
    async with asyncio.timeout(10):
        while await pillarbox.pool.fetchval(WAITING) < count:
            await asyncio.sleep(0.01)


async def told(made: Hook) -> list[tuple[str, str]]:
    return [(body["type"], body["data"]["email"]) for body in await made.payloads()]


async def bounce(pillarbox: World, conn: Connection, team: Team, *addresses: str) -> list[UUID]:
    """What settling or a report does with bad addresses, in an open transaction."""
    app = pillarbox.app
    source, at = app.need(Ids).new(), app.kit.clock.now()
    causes = [
        SuppressionCause(team_id=team.id, address=address, origin="bounce", source_id=source, at=at)
        for address in addresses
    ]
    added = await changes.add(conn, causes, app.need(Ids), app.need(Publisher))
    return [entry.id for entry in added]


async def test_many_additions_of_one_address_make_one_entry(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "suppression.added")
    answers = await asyncio.gather(*[team.post("/suppressions", {"email": KIM}) for _ in range(20)])
    assert [answer.status_code for answer in answers] == [201] * 20
    [only] = {answer.json()["id"] for answer in answers}
    [entry] = (await team.get("/suppressions")).json()["data"]
    assert entry["id"] == only
    assert await told(made) == [("suppression.added", KIM)]


async def test_an_addition_waits_for_the_other_and_answers_its_id(pillarbox: World) -> None:
    """Both 201 with the id of the first; also where the other is a bounce, whose origin stays."""
    team = await pillarbox.team()
    made = await hook(team, "suppression.added")
    async with transaction(pillarbox.pool) as conn:
        [first] = await bounce(pillarbox, conn, team, KIM)
        second = asyncio.create_task(team.post("/suppressions", {"email": KIM}))
        await waiting(pillarbox, 1)
    assert (await second).json() == {"object": "suppression", "id": str(first)}
    assert (await team.get(f"/suppressions/{KIM}")).json()["origin"] == "bounce"
    assert await told(made) == [("suppression.added", KIM)]


async def test_a_bounce_waits_for_a_manual_addition_and_changes_nothing(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "suppression.added")

    async def bounced() -> list[UUID]:
        async with transaction(pillarbox.pool) as conn:
            return await bounce(pillarbox, conn, team, KIM)

    async with team.db.transaction() as db:
        [first] = await manually(pillarbox, db, KIM)
        later = asyncio.create_task(bounced())
        await waiting(pillarbox, 1)
    assert await later == []
    found = (await team.get(f"/suppressions/{first}")).json()
    assert (found["origin"], found["source_id"]) == ("manual", None)
    assert await told(made) == [("suppression.added", KIM)]


async def manually(pillarbox: World, db: TeamDb, *addresses: str) -> list[UUID]:
    app = pillarbox.app
    asked = [
        SuppressionCause(
            team_id=db.team_id, address=address, origin="manual", source_id=None, at=app.kit.clock.now()
        )
        for address in addresses
    ]
    return await changes.suppress(db, asked, app.kit.clock.now(), app.need(Ids), app.need(Publisher))


async def test_an_addition_that_was_undone_leaves_the_place_to_the_other(
    database_url: str, tmp_path: Path
) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        made = await hook(team, "suppression.added")
        conn = await asyncpg.connect(database_url)
        undone = conn.transaction()
        await undone.start()
        [first] = await bounce(pillarbox, conn, team, KIM)
        second = asyncio.create_task(team.post("/suppressions", {"email": KIM}))
        await waiting(pillarbox, 1)
        await undone.rollback()
        await conn.close()
        assert (await second).json()["id"] != str(first)
        assert (await team.get(f"/suppressions/{KIM}")).json()["origin"] == "manual"
        assert await told(made) == [("suppression.added", KIM)]


async def test_an_addition_during_a_removal_comes_after_it(pillarbox: World) -> None:
    """The last committed wins, and each real change is told."""
    team = await pillarbox.team()
    made = await hook(team, "suppression.added", "suppression.removed")
    first = (await team.post("/suppressions", {"email": KIM})).json()["id"]
    async with team.db.transaction() as db:
        await changes.remove(db, [KIM], pillarbox.clock.now(), pillarbox.app.need(Publisher))
        second = asyncio.create_task(team.post("/suppressions", {"email": KIM}))
        await waiting(pillarbox, 1)
    assert (await second).status_code == 201
    now = (await team.get(f"/suppressions/{KIM}")).json()["id"]
    assert now == (await second).json()["id"] != first
    assert sorted(await told(made)) == [("suppression.added", KIM)] * 2 + [("suppression.removed", KIM)]


async def test_a_removal_during_an_addition_comes_after_it(pillarbox: World) -> None:
    """What an addition found on the list cannot go before it has answered."""
    team = await pillarbox.team()
    made = await hook(team, "suppression.added", "suppression.removed")
    known = (await team.post("/suppressions", {"email": KIM})).json()["id"]
    async with team.db.transaction() as db:
        assert await manually(pillarbox, db, KIM) == [UUID(known)]
        removal = asyncio.create_task(team.call("DELETE", f"/suppressions/{KIM}"))
        await waiting(pillarbox, 1)
    assert (await removal).json()["id"] == known
    assert (await team.get("/suppressions")).json()["data"] == []
    assert sorted(await told(made)) == [("suppression.added", KIM), ("suppression.removed", KIM)]


async def test_two_removals_of_one_entry_take_it_off_once(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "suppression.removed")
    known = (await team.post("/suppressions", {"email": KIM})).json()["id"]
    ways = [
        ("DELETE", f"/suppressions/{KIM}", None),
        ("DELETE", f"/suppressions/{known}", None),
        ("POST", "/suppressions/batch/remove", {"ids": [known]}),
        ("POST", "/suppressions/batch/remove", {"emails": [KIM]}),
    ]
    answers = await asyncio.gather(*[team.call(*way) for way in ways * 5])
    assert sum(known in answer.text for answer in answers) == 1
    assert {answer.status_code for answer in answers} <= {200, 404}
    assert await told(made) == [("suppression.removed", KIM)]


async def test_batches_in_opposite_order_never_wait_crosswise(database_url: str, tmp_path: Path) -> None:
    """Additions and removals by address and by id, and bounces, of the same addresses in any order: no
    deadlock, and the events of each address tell of it coming and going in turns."""
    addresses = [f"n{number}@orchard.example" for number in range(60)]
    chance = random.Random(7)
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        made = await hook(team, "suppression.added", "suppression.removed")
        everything = await team.post("/suppressions/batch/add", {"emails": addresses})
        ids = [item["id"] for item in everything.json()["data"]]

        def shuffled(of: Sequence[str]) -> list[str]:
            return chance.sample(of, len(of))

        async def bounced(mixed: list[str]) -> None:
            async with transaction(pillarbox.pool) as conn:
                await bounce(pillarbox, conn, team, *mixed)

        async def add(mixed: list[str]) -> None:
            answer = await team.post("/suppressions/batch/add", {"emails": mixed})
            assert answer.status_code == 201, answer.text
            assert len({item["id"] for item in answer.json()["data"]}) == 60

        async def remove(**wanted: list[str]) -> None:
            answer = await team.post("/suppressions/batch/remove", wanted)
            assert answer.status_code == 200, answer.text

        for _ in range(5):
            await asyncio.gather(
                *[add(shuffled(addresses)) for _ in range(4)],
                *[remove(emails=shuffled(addresses)) for _ in range(3)],
                remove(ids=shuffled(ids)),
                *[bounced(shuffled(addresses)) for _ in range(3)],
            )
        left = [item["email"] for item in (await team.get("/suppressions?limit=100")).json()["data"]]
        counts = Counter()
        for kind, address in await team_events(team, made):
            counts[address] += 1 if kind == "suppression.added" else -1
        assert {address: counts[address] for address in addresses} == {
            address: int(address in left) for address in addresses
        }


async def team_events(team: Team, made: Hook) -> list[tuple[str, str]]:
    """All that the webhook is to be told, kind and address."""
    rows = await team.db.source.fetch(
        """
        SELECT d.kind, convert_from(b.payload, 'utf8')::json->'data'->>'email' AS email
          FROM webhook_deliveries d
          JOIN webhook_events b ON b.team_id = d.team_id AND b.id = d.event_id
         WHERE d.team_id = $1 AND d.webhook_id = $2
        """,
        team.id,
        UUID(made.id),
    )
    return [(row["kind"], row["email"]) for row in rows]


async def test_a_row_that_is_held_too_long_is_a_conflict(pillarbox: World) -> None:
    """Conventions section 15: 409, and nothing was changed."""
    team = await pillarbox.team()
    async with transaction(pillarbox.pool) as conn:
        await bounce(pillarbox, conn, team, KIM)
        body = {"emails": ["new@quay.example", KIM]}
        answer = await team.post("/suppressions/batch/add", body)
        assert (answer.status_code, answer.json()["name"]) == (409, "resource_locked")
    assert [item["email"] for item in (await team.get("/suppressions")).json()["data"]] == [KIM]
