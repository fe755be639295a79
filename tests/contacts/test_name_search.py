"""Contacts are found by their terms: the same ones as by comparing each, without reading the others."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from kit.manual_world import clock_of, manual_world
from kit.query_plans import plan, rows_read
from kit.world import Team
from pillarbox.contacts.conditions.compiling import CompiledFilter, filled
from pillarbox.contacts.conditions.filtering import ContactFilter
from pillarbox.contacts.conditions.queries import BY_TERMS, by_terms
from pillarbox.contacts.name_search.keeping import TermKeeping
from pillarbox.contacts.name_search.terms import terms_to_find
from pillarbox.kernel.wire.paging import NEWEST

MANY = 20_000
MOST = 101
LETTERS = "abAB%_é"

FILL = """
    INSERT INTO contacts (team_id, id, address, unsubscribed, created_at, updated_at)
    SELECT $1, gen_random_uuid(), 'p' || n || '@x.example', false, now(), now()
      FROM generate_series(1, $2::integer) AS n
"""
FILL_TERMS = """
    INSERT INTO contact_terms (team_id, contact_id, terms)
    SELECT team_id, id, CASE WHEN address LIKE 'p777_@%' THEN $2::integer[] ELSE '{1,2,3}' END
      FROM contacts WHERE team_id = $1
"""
PLAIN = r"""
    SELECT id FROM contacts
     WHERE team_id = $1 AND (lower(coalesce(email, address)) LIKE $2 ESCAPE '\'
        OR lower(first_name) LIKE $2 ESCAPE '\' OR lower(last_name) LIKE $2 ESCAPE '\')
"""


@pytest.fixture
@asynccontextmanager
async def team(database_url: str, tmp_path: Path) -> AsyncIterator[Team]:
    async with manual_world(database_url, tmp_path) as pillarbox:
        yield await pillarbox.team()


async def test_few_of_many_are_found_without_reading_the_others(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    team = uuid4()
    terms = terms_to_find(team, "quayside")
    everybody = CompiledFilter("", "true", ())
    try:
        await conn.execute(FILL, team, MANY)
        await conn.execute(FILL_TERMS, team, terms)
        await conn.execute("VACUUM ANALYZE")
        for mode in ("force_custom_plan", "force_generic_plan"):
            await conn.execute(f"SET plan_cache_mode = {mode}")
            done = await plan(conn, filled(BY_TERMS, everybody), (team, NEWEST, terms, MOST))
            assert "Seq Scan" not in str(done), (mode, done)
            assert done["Actual Rows"] == 10
            assert max(rows_read(done)) <= MOST, (mode, done)
    finally:
        await conn.close()


async def test_terms_find_what_a_comparison_of_each_contact_finds(team: Team) -> None:
    chance = random.Random(66)
    keeping = TermKeeping(team.world.pool, clock_of(team.world))
    ids = []
    for number in range(60):
        body = {"email": f"{chance.choice(['ab', 'ba'])}{number}@quay.example", **names(chance)}
        ids.append((await team.post("/contacts", body)).json()["id"])
    await same_are_found(team, keeping, chance)
    for one in ids[:20]:
        assert (await team.call("PATCH", f"/contacts/{one}", names(chance))).status_code == 200
    for one in ids[15:30]:
        assert (await team.call("DELETE", f"/contacts/{one}")).status_code == 200
    await same_are_found(team, keeping, chance)
    assert await team.world.pool.fetchval("SELECT count(*) FROM contact_terms") == 45


async def same_are_found(team: Team, keeping: TermKeeping, chance: random.Random) -> None:
    """Let the terms be kept, and compare what is found by them with what is found without."""
    clock_of(team.world).advance(timedelta(minutes=1))
    await keeping.keep_up()
    some = 0
    for word in ("quay", *(text(chance, 3, 4) for _ in range(60))):
        pattern = word.lower().replace("%", r"\%").replace("_", r"\_")
        plain = {row[0] for row in await team.world.pool.fetch(PLAIN, team.id, f"%{pattern}%")}
        wanted = ContactFilter(clock_of(team.world).now(), search=word)
        found = await by_terms(team.db, wanted, NEWEST, terms_to_find(team.id, word), 1000)
        assert {one.id for one in found} == plain, word
        some += bool(plain)
    assert some > 10


def names(chance: random.Random) -> dict[str, str]:
    return {"first_name": text(chance, 3, 12), "last_name": text(chance, 3, 12)}


def text(chance: random.Random, shortest: int, longest: int) -> str:
    return "".join(chance.choices(LETTERS, k=chance.randint(shortest, longest)))
