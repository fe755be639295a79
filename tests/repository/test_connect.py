"""How commands reach the database: beside a running server, and without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pillarbox.app import SETTINGS
from pillarbox.kernel.postgres.embedded import EmbeddedPostgres, processes_in
from pillarbox.kernel.postgres.migrations import MigrationError
from pillarbox.kernel.process.supervisor import postgres_folder
from pillarbox.kernel.security.ring_check import KeyRingRefused
from pillarbox.kernel.settings.settings import read_settings
from pillarbox.kernel.storage.data_folder import FolderInUse, locked
from pillarbox.kernel.terminal.connect import connect
from repository.running import supervisor

COUNT = "SELECT count(*) FROM teams"


async def test_without_a_server_the_embedded_database_runs_for_the_command_alone(tmp_path: Path) -> None:
    settings = read_settings(SETTINGS, {"data": str(tmp_path)}, {})
    first = EmbeddedPostgres(postgres_folder(settings))
    await first.start()
    await first.stop()
    async with connect(settings) as found:
        assert await found.pool.fetchval(COUNT) == 0
        assert found.server is None
        with pytest.raises(KeyRingRefused, match="No server has begun"):
            found.key_ring()
        with pytest.raises(FolderInUse), locked(tmp_path):
            pass
    assert processes_in(tmp_path / "postgres") == []
    assert not (tmp_path / "secret.key").exists()


async def test_beside_a_server_the_command_uses_its_database_and_keys(tmp_path: Path) -> None:
    with supervisor(tmp_path, "--processes", "1") as running:
        listeners = running.ready()
        processes = running.family()
        async with connect(read_settings(SETTINGS, {"data": str(tmp_path)}, {})) as found:
            assert await found.pool.fetchval(COUNT) == 0
            assert found.server == f"http://{listeners['http']}" == found.settings.public_url
            assert found.settings.secret_key == (tmp_path / "secret.key").read_text().strip()
            assert running.postmaster() in processes
        assert running.get()


async def test_a_named_database_is_used_as_it_is(tmp_path: Path, database_url: str) -> None:
    folder = tmp_path / "not-there"
    settings = read_settings(SETTINGS, {"data": str(folder), "database_url": database_url}, {})
    async with connect(settings) as found:
        assert await found.pool.fetchval("SELECT current_database()") in database_url
    assert not folder.exists()


async def test_a_command_does_not_migrate_a_named_database(
    tmp_path: Path, postgres: EmbeddedPostgres
) -> None:
    settings = read_settings(SETTINGS, {"data": str(tmp_path), "database_url": postgres.url("postgres")}, {})
    with pytest.raises(MigrationError, match="no schema yet"):
        async with connect(settings):
            pytest.fail("the command ran")
