"""Pieces of answers in the database never show in an answer, whatever changes and whoever asks."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import asyncpg
import pytest

from kit.clock import ManualClock
from kit.histories import Sender, generate, instant
from kit.manual_world import manual_world
from kit.world import Team, World
from pillarbox.backup import restore
from pillarbox.backup.make import BackupOptions, make
from pillarbox.backup.programs import Programs
from pillarbox.backup.target import BackupTarget
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.query import Query
from pillarbox.metrics import answering, piece_queries, question, read, wire
from pillarbox.metrics.memory import CachedPiece, PieceCache
from pillarbox.metrics.stored import (
    FORMAT,
    LIFETIME,
    MOST_DAYS,
    MOST_WAITING,
    WRITE_EVERY,
    NewPiece,
    PieceStore,
    remove_old,
)
from pillarbox.metrics.table import MetricKey, of_rows
from pillarbox.metrics.wire import PeriodRows
from pillarbox.timeline import rebuilding, rollups
from pillarbox.timeline.record import Timeline

NOW = instant("2026-11-21T10:07:33.123456")
START = NOW - timedelta(days=5)
FIRST, TODAY = (at.replace(hour=0, minute=0, second=0, microsecond=0) for at in (START, NOW))
DAYS = [FIRST + timedelta(days=n) for n in range(6)]
SENDERS = (
    Sender(UUID(int=1), "harbor.example", None),
    Sender(UUID(int=1), "harbor.example", UUID(int=6)),
    Sender(UUID(int=2), "quay.example", UUID(int=5)),
    Sender(None, "sandbox.example", None),
)
QUESTIONS = tuple(
    {"start_date": f"{FIRST.date()}", **end, **more}
    for more in (
        {"dimensions": "period,domain"},
        {"dimensions": "period,domain", "timezone": "Asia/Kolkata"},
        {"dimensions": "period,domain", "metrics": "sent,open_rate", "domain_id": str(UUID(int=1))},
        {"dimensions": "period"},
        {"dimensions": "domain"},
        {"dimensions": "period,broadcast", "timezone": "America/New_York"},
        {"dimensions": "period,domain,broadcast", "granularity": "hourly", "timezone": "Asia/Kathmandu"},
        {"dimensions": "period,domain", "granularity": "weekly", "broadcast_id": str(UUID(int=5))},
    )
    for end in ({}, {"end_date": f"{(TODAY - timedelta(days=1)).date()}"})
)
STATE = (str(UUID(int=9)),)


class CountingStore(PieceStore):
    """Counts the pieces that it has found."""

    found = 0

    async def find(self, team_id: UUID, ids: Sequence[UUID]) -> dict[UUID, CachedPiece]:
        here = await super().find(team_id, ids)
        self.found += len(here)
        return here


@dataclass
class Asking:
    """A team whose questions several processes answer; `clock` is theirs. `pool` leads to another database
    than the world's."""

    world: World
    team: Team
    clock: ManualClock
    store: CountingStore
    memory: PieceCache = field(default_factory=PieceCache)
    written: int = 0
    pool: asyncpg.Pool | None = None

    async def history(self, seed: int, emails: int) -> None:
        self.written += 1
        timeline = self.world.app.need(Timeline)
        window = [(START, NOW)]
        await generate(
            self.world.pool, timeline, self.team.id, window, SENDERS, emails, 100 * seed + self.written, NOW
        )

    async def answer(
        self, asked: dict[str, str], memory: PieceCache | None = None, *, with_pieces: bool = True
    ) -> bytes:
        """What a process answers that remembers `memory`, or nothing."""
        wanted = question.read(Query(urlencode(asked).encode()), NOW, 0)
        store = self.store if with_pieces else None
        answer = await answering.answer(
            self.pool or self.world.pool,
            self.team.id,
            wanted,
            read.cut(wanted),
            memory or PieceCache(),
            {},
            store,
        )
        self.clock.advance(WRITE_EVERY)
        await self.store.flush()
        return answer

    async def check(self, asked: dict[str, str]) -> None:
        """The same from what is stored, from what a process remembers besides, and from neither."""
        counted = await self.answer(asked, with_pieces=False)
        assert await self.answer(asked) == counted
        assert await self.answer(asked, self.memory) == counted
        assert await self.answer(asked) == counted


@asynccontextmanager
async def asking(database_url: str, folder: Path) -> AsyncIterator[Asking]:
    clock = ManualClock(NOW)
    async with manual_world(database_url, folder, clock) as pillarbox:
        team = await pillarbox.team()
        yield Asking(pillarbox, team, clock, CountingStore(pillarbox.pool, clock))


async def change(here: Asking, chance: random.Random, seed: int) -> None:
    """Something that may happen to counts between two questions."""
    pool, day = here.world.pool, chance.choice(DAYS)
    match chance.choice(["late", "late", "fold", "fold", "hand", "remove", "rebuild", "forget", "empty"]):
        case "late":
            await here.history(seed, 3)
        case "fold":
            await rollups.fold(pool, NOW)
        case "hand":
            await pool.execute(
                "UPDATE rollups SET opened = opened + 1, sent = sent + 2 WHERE level = 3 AND start >= $1", day
            )
        case "remove":
            await pool.execute("DELETE FROM rollups WHERE start >= $1 AND domain_name < 'q'", day)
        case "rebuild":
            ids = Ids(here.world.clock)
            mended = rebuilding.rebuild(pool, ids, here.team.id, NOW, correct=True, since=day)
            async for _ in mended:
                pass
        case "forget":
            await rollups.forget(pool, here.team.id, chance.choice(DAYS[:3]))
        case "empty":
            await pool.execute("TRUNCATE rollups")


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_answers_are_the_same_with_pieces_and_without(
    database_url: str, tmp_path: Path, seed: int
) -> None:
    """Octet for octet, after any changes in any order."""
    chance = random.Random(seed)
    async with asking(database_url, tmp_path) as here:
        await here.history(seed, 30)
        await rollups.fold(here.world.pool, NOW)
        for asked in QUESTIONS:
            await here.check(asked)
        for _ in range(25):
            await change(here, chance, seed)
            for asked in chance.sample(QUESTIONS, 3):
                await here.check(asked)
        assert here.store.found > 100


async def test_another_process_does_not_count_again(database_url: str, tmp_path: Path) -> None:
    """Also not after a restart, and for questions of another range only what is new."""
    async with asking(database_url, tmp_path) as here:
        await here.history(1, 30)
        await rollups.fold(here.world.pool, NOW)
        for asked in QUESTIONS[1::2]:
            counted = await here.answer(asked)
            async with here.world.pool.acquire() as conn:
                # Unseen by the versions, which triggers write.
                await conn.execute("ALTER TABLE rollups DISABLE TRIGGER USER")
                await conn.execute("UPDATE rollups SET received = received + 1000, sent = sent + 1000")
                await conn.execute("ALTER TABLE rollups ENABLE TRIGGER USER")
            assert await here.answer(asked) == counted
            assert await here.answer(asked, with_pieces=False) != counted


async def test_a_changed_day_is_the_only_one_that_is_not_found(database_url: str, tmp_path: Path) -> None:
    async with asking(database_url, tmp_path) as here:
        await here.history(1, 30)
        await rollups.fold(here.world.pool, NOW)
        await here.answer(QUESTIONS[1])
        before = here.store.found
        await here.answer(QUESTIONS[1])
        assert here.store.found - before == 5
        await here.world.pool.execute("UPDATE rollups SET opened = 1 WHERE level = 3 AND start = $1", DAYS[2])
        before = here.store.found
        await here.answer(QUESTIONS[1])
        assert here.store.found - before == 4


async def test_the_present_day_and_what_is_not_folded_is_not_stored(
    database_url: str, tmp_path: Path
) -> None:
    async with asking(database_url, tmp_path) as here:
        await here.history(1, 30)
        await here.answer(QUESTIONS[0])
        oldest = await here.world.pool.fetchval("SELECT min(start) FROM metric_increments")
        days = await here.world.pool.fetch("SELECT first_day FROM metric_pieces")
        assert all(row["first_day"] + timedelta(days=1) <= oldest for row in days)
        await rollups.fold(here.world.pool, NOW)
        await here.answer(QUESTIONS[0])
        days = await here.world.pool.fetch("SELECT first_day FROM metric_pieces ORDER BY 1")
        assert [row["first_day"] for row in days] == DAYS[:5]


async def test_a_team_finds_nothing_of_another_one(database_url: str, tmp_path: Path) -> None:
    async with asking(database_url, tmp_path) as here:
        other = await here.world.team("Quay")
        await here.history(1, 30)
        await rollups.fold(here.world.pool, NOW)
        await here.answer(QUESTIONS[1])
        ids = [row["id"] for row in await here.world.pool.fetch("SELECT id FROM metric_pieces")]
        assert len(ids) == len(await here.store.find(here.team.id, ids)) == 5
        assert await here.store.find(other.id, ids) == {}


def piece(number: int, octets: int = 10, state: tuple[str | None, ...] = STATE) -> NewPiece:
    return NewPiece(UUID(int=number), FIRST, state, PeriodRows(1, bytes(octets), (0,) * 15))


async def stored(here: Asking) -> list[int]:
    rows = await here.world.pool.fetch("SELECT id FROM metric_pieces ORDER BY id")
    return [row["id"].int for row in rows]


async def test_a_team_stores_one_answer_in_ten_seconds_and_none_that_is_too_large(
    database_url: str, tmp_path: Path
) -> None:
    async with asking(database_url, tmp_path) as here:
        here.store.offer(here.team.id, [piece(1), piece(2, state=(None,) * (MOST_DAYS + 1))])
        here.store.offer(here.team.id, [piece(3)])
        await here.store.flush()
        here.store.offer(here.team.id, [piece(4)])
        await here.store.flush()
        assert await stored(here) == [1]
        here.clock.advance(WRITE_EVERY)
        here.store.offer(here.team.id, [piece(5, MOST_WAITING + 1)])
        await here.store.flush()
        here.store.offer(here.team.id, [piece(6)])
        await here.store.flush()
        assert await stored(here) == [1, 6]


async def test_the_oldest_pieces_of_a_team_make_room(database_url: str, tmp_path: Path) -> None:
    async with asking(database_url, tmp_path) as here:
        for number in (3, 1, 2):
            here.store.offer(here.team.id, [piece(number)])
            await here.store.flush()
            here.clock.advance(WRITE_EVERY)
        db = TeamDb(here.world.pool, here.team.id)
        await piece_queries.trim(db, 10, 30)
        assert await stored(here) == [1, 2, 3]
        await piece_queries.trim(db, 10, 29)
        assert await stored(here) == [1, 2]
        await piece_queries.trim(db, 1, 30)
        assert await stored(here) == [2]


async def test_pieces_end_with_their_time_and_with_their_rollups(database_url: str, tmp_path: Path) -> None:
    async with asking(database_url, tmp_path) as here:
        await here.history(1, 30)
        await rollups.fold(here.world.pool, NOW)
        await here.answer(QUESTIONS[1])
        pool = here.world.pool
        assert await remove_old(pool, NOW + LIFETIME) == 0
        await rollups.forget(pool, here.team.id, DAYS[2])
        assert await remove_old(pool, NOW) == 2
        assert await remove_old(pool, NOW + LIFETIME + timedelta(minutes=1)) == 3


async def test_pieces_of_a_clock_that_was_wrong_do_not_stay_the_newest(
    database_url: str, tmp_path: Path
) -> None:
    """Else they would keep all others out for as long as it was wrong, and a month."""
    async with asking(database_url, tmp_path) as here:
        ahead = PieceStore(here.world.pool, ManualClock(NOW + timedelta(days=400)))
        for store, number in ((ahead, 1), (here.store, 2)):
            store.offer(here.team.id, [piece(number)])
            await store.flush()
        assert await remove_old(here.world.pool, NOW) == 1
        assert await stored(here) == [2]


async def test_a_store_that_cannot_write_changes_no_answer(database_url: str, tmp_path: Path) -> None:
    async with asking(database_url, tmp_path) as here:
        await here.history(1, 30)
        await rollups.fold(here.world.pool, NOW)
        await here.world.pool.execute("ALTER TABLE metric_pieces ADD CHECK (rows < 0)")
        await here.check(QUESTIONS[1])
        assert here.store.found == 0


async def test_pieces_that_are_stored_beside_writers_and_folders_hold(
    database_url: str, tmp_path: Path
) -> None:
    """Each answer is of one snapshot: it has all that one before it had, and its rows are its totals."""
    async with asking(database_url, tmp_path) as here:
        await here.history(1, 20)
        writers = [asyncio.create_task(here.history(seed, 15)) for seed in (2, 3)]

        async def keep_folding() -> None:
            while not all(writer.done() for writer in writers):
                await rollups.fold(here.world.pool, NOW)

        async def keep_asking(asked: dict[str, str]) -> None:
            last = 0
            while not all(writer.done() for writer in writers):
                told = json.loads(await here.answer(asked))
                seen = told["totals"]["received"]
                assert sum(row["received"] for row in told["data"]) == seen >= last
                last = seen

        await asyncio.gather(keep_folding(), *map(keep_asking, QUESTIONS[:2]), *writers)
        await rollups.fold(here.world.pool, NOW)
        for asked in QUESTIONS:
            await here.check(asked)


@pytest.fixture
def blank(databases: Any) -> Iterator[str]:
    url = databases.fresh(template="template0")
    yield url
    databases.drop(url)


async def test_stored_pieces_hold_after_a_restore(database_url: str, blank: str, tmp_path: Path) -> None:
    """A process on the restored database finds them and answers as before, also after more was counted."""
    target = BackupTarget.open(str(tmp_path / "target"))
    async with asking(database_url, tmp_path) as here:
        await here.history(1, 30)
        await rollups.fold(here.world.pool, NOW)
        before = [await here.answer(asked) for asked in QUESTIONS]
        blobs = here.world.app.need(BlobStore)
        options = BackupOptions(KeyRing.generate_text(), None)
        made = await make(database_url, blobs, target, Programs(None), options, SystemClock(), "0000")
        await restore.load(target, made.manifest, blank, Programs(None), SystemClock(), tmp_path)
        await target.close()
        async with asyncpg.create_pool(blank, min_size=1, max_size=2) as pool:
            restored = replace(here, store=CountingStore(pool, here.clock), memory=PieceCache(), pool=pool)
            stored = await pool.fetchval("SELECT count(*) FROM metric_pieces")
            assert [await restored.answer(asked) for asked in QUESTIONS] == before
            assert restored.store.found >= stored > 0
            await pool.execute("UPDATE rollups SET opened = opened + 1 WHERE start >= $1", DAYS[2])
            for asked in QUESTIONS:
                await restored.check(asked)
            assert await restored.answer(QUESTIONS[0]) != before[0]


def test_pieces_are_written_as_ever() -> None:
    """Whoever changes this gives `stored.FORMAT` another number: what earlier code has stored is found."""
    asked = {"start_date": "2026-11-20", "dimensions": "period,domain", "metrics": "sent,bounced,open_rate"}
    wanted = question.read(Query(urlencode(asked).encode()), NOW, 0)
    counts = (3, 2, 4, 0, 0, 0, 1, 0, 1, 5, 0, 3, 0, 0, 0)
    table = of_rows([(0, MetricKey("harbor.example", str(UUID(int=1)), None), counts)])
    texts = wire.texts(wanted, read.cut(wanted), table, [0, 1], {})
    sums = wire.counts(table, [0, 1])
    made = {at: PeriodRows(*text, sums[at]) for at, text in texts.items()}
    assert made == {
        0: PeriodRows(
            1,
            b'{"period":"2026-11-20","domain_id":"00000000-0000-0000-0000-000000000001",'
            b'"domain_name":"harbor.example","sent":2,"bounced":2,"open_rate":75.0}',
            counts,
        ),
        1: PeriodRows(0, b"", (0,) * 15),
    }
    assert FORMAT == 1
