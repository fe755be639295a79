"""Blobs that retention would delete while a backup is made; and backups in a bucket (OPS-05)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from obstore.store import LocalStore

from kit.backups import programs
from kit.clock import ManualClock
from kit.world import World, world
from pillarbox.backup import check, restore
from pillarbox.backup.backup_manifest import BackupManifest
from pillarbox.backup.failure import BackupError
from pillarbox.backup.location import location_of
from pillarbox.backup.make import BackupOptions, make, session
from pillarbox.backup.programs import Programs
from pillarbox.backup.target import BackupTarget, BucketFiles
from pillarbox.emails.integrity import blob_references
from pillarbox.emails.retention import EmailRetention
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.bucket import Bucket

LARGE = {"filename": "chart.bin", "content": "QUFB" * 100_000}
RING = KeyRing.generate_text()


class BusyStore(BlobStore):
    """A blob store with something that happens before the first blob is read."""

    deed: Callable[[], Awaitable[object]] | None = None

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        return self._late(key, start, end)

    async def _late(self, key: str, start: int, end: int | None) -> AsyncIterator[bytes]:
        deed, self.deed = self.deed, None
        if deed is not None:
            await deed()
        async for chunk in super().stream(key, start, end):
            yield chunk


async def backed_up(url: str, blobs: BlobStore, target: BackupTarget, **options: Any) -> BackupManifest:
    """A backup without its key ring."""
    made = await make(
        url, blobs, target, Programs(None), BackupOptions(RING, None, **options), SystemClock(), "0000"
    )
    return made.manifest


async def sent(pillarbox: World, mails: int = 2) -> None:
    team = await pillarbox.team()
    for number in range(mails):
        await team.send(subject=f"chart {number}", attachments=[LARGE])
    while await pillarbox.turn():
        pass


def retention(pillarbox: World, days: int) -> EmailRetention:
    """As it is some days later."""
    clock = ManualClock(pillarbox.clock.now() + timedelta(days=days))
    return EmailRetention(pillarbox.pool, clock, pillarbox.app.need(BlobStore), emails=1, bodies=1)


async def test_what_retention_removes_meanwhile_is_in_the_backup(database_url: str, tmp_path: Path) -> None:
    """All emails of the snapshot are removed, by the real retention, before their blobs are copied."""
    target = BackupTarget.open(str(tmp_path / "target"))
    async with world(database_url, tmp_path, clock=ManualClock(), started=False) as pillarbox:
        await sent(pillarbox)
        store = pillarbox.app.need(BlobStore)
        blobs = BusyStore(store._backend)

        async def remove_all() -> None:
            assert await retention(pillarbox, 30).purge_emails() == 2
            old = SystemClock().now() + timedelta(days=9)
            kept = await blob_references.collect_unnamed(pillarbox.pool, store, old, is_ours=True)
            assert kept.withheld == "a backup is being made"

        blobs.deed = remove_all
        manifest = await backed_up(database_url, blobs, target)
        assert (manifest.blobs.blobs, manifest.blobs.missing) == (4, 0), "attachments and captured mail"
        assert await check.problems(target, manifest, Programs(None), None) == []
        # When it is over, what was left is collected as an orphan.
        old = SystemClock().now() + timedelta(days=9)
        gone = await blob_references.collect_unnamed(pillarbox.pool, store, old, is_ours=True)
        assert gone.collected == 2
    await target.close()


async def test_a_backup_waits_for_nobody_and_only_one_runs(database_url: str) -> None:
    other = await asyncpg.connect(database_url)
    async with session(database_url):
        assert not await blob_removal.is_allowed(other)
        with pytest.raises(BackupError, match="Another backup"):
            async with session(database_url):
                pass
    assert await blob_removal.is_allowed(other)
    await other.close()


def bucket(folder: Path) -> BackupTarget:
    """A target in an object store; what is in it are files below this folder."""
    for name in ("store", "store/blobs"):
        (folder / name).mkdir(exist_ok=True)
    files = BucketFiles(Bucket(LocalStore(folder / "store")))
    return BackupTarget(
        location_of("s3://bucket"), files, BlobStore(Bucket(LocalStore(folder / "store" / "blobs")))
    )


@pytest.fixture
def blank(databases: Any) -> Iterator[str]:
    url = databases.fresh(template="template0")
    yield url
    databases.drop(url)


async def test_a_bucket_holds_backups_too(database_url: str, blank: str, tmp_path: Path) -> None:
    target = bucket(tmp_path)
    async with world(database_url, tmp_path, clock=ManualClock(), started=False) as pillarbox:
        await sent(pillarbox)
        blobs = pillarbox.app.need(BlobStore)
        first = await backed_up(database_url, blobs, target)
        assert await target.backups() == [first.name]
        assert await check.problems(target, first, Programs(None), None) == []
        await pillarbox.pool.execute("DELETE FROM attachments")
        made, gone, _ = await make(
            database_url,
            blobs,
            target,
            Programs(None),
            BackupOptions(RING, None, keep=1),
            SystemClock(),
            "0001",
        )
        assert gone == [first.name]
        assert made.blobs.copied == 0
        assert await check.problems(target, made, Programs(None), None) == []
    left = [path for path in (tmp_path / "store" / "blobs").rglob("*") if path.is_file()]
    assert len(left) == made.blobs.blobs == 2
    await restore.load(target, made, blank, Programs(None), SystemClock(), tmp_path)
    assert await restore.differences(blank, made, ("processes", "restored")) == []


async def test_a_backup_that_was_not_finished_is_none_in_a_bucket_either(tmp_path: Path) -> None:
    target = bucket(tmp_path)
    await target.write("20261122T150000.000000Z-0000", "database.dump", b"half")
    assert await target.backups() == []
    with pytest.raises(BackupError, match="There is no whole backup"):
        await target.manifest()
    await target.remove_unfinished()
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


async def test_a_dump_that_fails_makes_no_backup_in_a_bucket(database_url: str, tmp_path: Path) -> None:
    target = bucket(tmp_path)
    failing = Programs(
        programs(tmp_path / "bin", dump="echo some; echo 'pg_dump: error: no more' >&2; exit 1")
    )
    blobs = BlobStore.open(f"file:{tmp_path / 'blobs'}")
    with pytest.raises(BackupError):
        await make(database_url, blobs, target, failing, BackupOptions(RING, None), SystemClock(), "0000")
    assert await target.backups() == []
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


async def test_a_bucket_has_a_prefix() -> None:
    """Blobs lie below the backups, in a store of their own."""
    with pytest.raises(BackupError, match="Credentials"):
        BackupTarget.open("s3://user:secret@bucket/x")
    target = BackupTarget.open("s3://bucket/mail/")
    assert target.place == "s3://bucket/mail"


async def test_a_new_store_gets_the_id_that_the_database_knows(database_url: str, tmp_path: Path) -> None:
    blobs = BlobStore.open(f"file:{tmp_path / 'blobs'}")
    conn = await asyncpg.connect(database_url)
    await conn.execute("DROP TABLE IF EXISTS blob_store")
    await restore.mark_store(database_url, blobs)
    assert await blobs.size(restore.STORE_ID) is None
    await conn.execute("CREATE TABLE blob_store (id smallint PRIMARY KEY DEFAULT 1, store_id uuid NOT NULL)")
    await conn.execute("INSERT INTO blob_store (store_id) VALUES ('0199a3c2-0000-7000-8000-000000000001')")
    await conn.close()
    await restore.mark_store(database_url, blobs)
    assert await blobs.get(restore.STORE_ID) == b"0199a3c2-0000-7000-8000-000000000001"
    await blobs.close()
