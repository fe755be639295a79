"""A list that the database has encoded is, byte by byte, what the process would have made of its rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kit.audience import a_segment
from kit.world import world
from pillarbox.contacts import reading
from pillarbox.kernel.ids import Ids

NAMES = [
    None,
    "",
    "Ada",
    '"quoted" \\ and / slashed',
    "".join(map(chr, range(1, 32))),
    "\x7f\x80\x9f\u2028\u2029\ufeff\ufffd",
    "Zoë 🙂 " + "e\u0301",
    "</script><!-- & %s {}",
    "👩‍👩‍👧 " * 20,
]


@pytest.mark.parametrize("block", [1, 2, 3, 1000])
async def test_encoded_rows_are_the_same_bytes(
    database_url: str, tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BLOCK", block)
    async with world(database_url, tmp_path, started=False) as pillarbox:
        team = await pillarbox.team()
        segment = await a_segment(team)
        at = datetime(2026, 10, 2, 9, 15, 4, 120300, UTC)
        ids = []
        for number, name in enumerate(NAMES):
            contact = pillarbox.app.need(Ids).new()
            ids.append(contact)
            await pillarbox.pool.execute(
                "INSERT INTO contacts VALUES ($1, $2, $3, $4, $5, $6, $7, '{}', $8, $8)",
                team.id,
                contact,
                f"p{number}@xn--kln-sna.example",
                f"p{number}@köln.example" if number % 2 else None,
                name,
                NAMES[-number],
                number % 3 == 0,
                at + timedelta(microseconds=number * 100_000 + number),
            )
        everybody = "INSERT INTO segment_members SELECT team_id, $1, id, now() FROM contacts"
        await pillarbox.pool.execute(everybody, segment)
        for query in ("", f"segment_id={segment}&"):
            whole = await team.get(f"/contacts?{query}")
            assert whole.content == (await team.get(f"/contacts?{query}limit=100")).content
            assert len(whole.json()["data"]) == len(NAMES)
            for cursor in (f"after={ids[4]}", f"before={ids[4]}"):
                part = await team.get(f"/contacts?{query}{cursor}")
                assert part.content == (await team.get(f"/contacts?{query}{cursor}&limit=100")).content
        assert (await team.get(f"/contacts?after={ids[0]}")).json()["data"] == []
