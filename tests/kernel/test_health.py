"""The question of `GET /health` to the database, which concurrent requests share."""

from __future__ import annotations

import asyncio

from pillarbox.kernel.http.health import DatabaseProbe


async def test_a_new_question_leaves_those_who_share_the_last_one_their_answer(database_url: str) -> None:
    """OPS-02: each of them gets the answer to his own question."""
    probe = DatabaseProbe(database_url)

    async def ask_twice() -> list[bool]:
        return [await probe.answers(), await probe.answers()]

    try:
        assert await asyncio.gather(*(ask_twice() for _ in range(5))) == [[True, True]] * 5
    finally:
        await probe.close()
