"""Which shard group a team's rows lie in (docs/decisions/0052)."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import asyncpg
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.kernel.postgres.shards import shard_group, uuid_hash


async def test_the_hash_is_that_of_postgresql(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    try:
        rows = await conn.fetch(
            "SELECT id, uuid_hash(id) AS hash"
            " FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 2000)"
            " UNION ALL SELECT '00000000-0000-0000-0000-000000000000'"
            " UNION ALL SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff') AS made"
        )
    finally:
        await conn.close()
    assert [uuid_hash(row["id"]) for row in rows] == [row["hash"] for row in rows]


@given(st.uuids(), st.integers(1, 300))
def test_every_team_is_in_one_of_the_groups(team_id: UUID, shards: int) -> None:
    assert 0 <= shard_group(team_id, shards) < shards
    assert shard_group(team_id, 0) == 0


def test_teams_spread_over_the_groups() -> None:
    found = Counter(shard_group(UUID(int=number), 32) for number in range(32_000))
    assert len(found) == 32
    assert max(found.values()) < 1300
