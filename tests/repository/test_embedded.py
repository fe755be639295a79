"""The embedded PostgreSQL: private, killed with its parent, and back after any crash."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from pillarbox.kernel.postgres import programs
from pillarbox.kernel.postgres.embedded import SOCKET_NAME, EmbeddedError, EmbeddedPostgres, processes_in
from pillarbox.kernel.postgres.programs import ProgramsError, SystemAccount

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes accounts")


@asynccontextmanager
async def running(folder: Path, *, durable: bool = False) -> AsyncIterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(folder, durable=durable)
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


async def value(server: EmbeddedPostgres, sql: str) -> object:
    conn = await asyncpg.connect(server.url())
    try:
        return await conn.fetchval(sql)
    finally:
        await conn.close()


async def test_what_was_written_is_there_after_a_stop(tmp_path: Path) -> None:
    async with running(tmp_path / "postgres") as server:
        await value(server, "CREATE TABLE kept AS SELECT 1 AS one")
    async with running(tmp_path / "postgres") as server:
        assert await value(server, "SELECT one FROM kept") == 1
    assert processes_in(tmp_path / "postgres") == []


async def test_the_server_is_utf8_in_byte_order_and_listens_on_no_port(tmp_path: Path) -> None:
    async with running(tmp_path / "postgres") as server:
        assert await value(server, "SHOW server_encoding") == "UTF8"
        assert await value(server, "SELECT 'Z' < 'a'") is True
        assert await value(server, "SHOW listen_addresses") == ""
        assert await value(server, "SHOW data_checksums") == "on"
        assert (tmp_path / "postgres" / SOCKET_NAME).is_socket()
        assert stat.S_IMODE((tmp_path / "postgres").stat().st_mode) == 0o700
    assert not (tmp_path / "postgres" / SOCKET_NAME).exists()


async def test_a_killed_server_starts_again_at_the_same_place(tmp_path: Path) -> None:
    async with running(tmp_path / "postgres", durable=True) as server:
        await value(server, "CREATE TABLE kept AS SELECT 1 AS one")
        url, pid = server.url(), server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert await server.exited() == -signal.SIGKILL
        assert server.pid is None
        await server.restart()
        assert server.url() == url
        assert server.pid != pid
        assert await value(server, "SELECT one FROM kept") == 1


@pytest.mark.slow
async def test_a_stale_pid_file_with_a_foreign_number_does_not_mislead(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    async with running(folder):
        content = (folder / "postmaster.pid").read_text()
    (folder / "postmaster.pid").write_text("\n".join([str(os.getppid()), *content.splitlines()[1:]]) + "\n")
    async with running(folder) as server:
        assert await value(server, "SELECT 1") == 1


async def test_a_deep_data_folder_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 100) / ("e" * 100) / "postgres"
    async with running(folder) as server:
        assert await value(server, "SELECT 1") == 1


@pytest.mark.slow
async def test_a_deep_data_folder_has_a_link_of_its_own_that_goes_with_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short := Path(tempfile.mkdtemp(prefix="run-"))))
    deep = tmp_path / ("d" * 100)
    try:
        async with running(deep / "one" / "postgres") as one, running(deep / "two" / "postgres") as two:
            assert one.url() != two.url()
            assert len(list(short.iterdir())) == 2
            await two.stop()
            assert await value(one, "SELECT 1") == 1
        assert list(short.iterdir()) == []
    finally:
        shutil.rmtree(short)


async def test_a_link_that_somebody_else_could_have_made_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-09: its name can be guessed."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short := Path(tempfile.mkdtemp(prefix="run-"))))
    folder = tmp_path / ("d" * 100) / "postgres"
    try:
        async with running(folder):
            (link,) = short.iterdir()
        link.mkdir()
        link.chmod(0o777)
        server = EmbeddedPostgres(folder)
        with pytest.raises(EmbeddedError, match="somebody else's"):
            await server.start()
    finally:
        shutil.rmtree(short)


async def test_a_cluster_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    async with running(folder):
        pass
    (folder / "PG_VERSION").write_text("13\n")
    with pytest.raises(EmbeddedError, match="was made by PostgreSQL 13"):
        await EmbeddedPostgres(folder).start()


async def test_a_half_made_cluster_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "postgres.new").mkdir()
    (tmp_path / "postgres.new" / "PG_VERSION").write_text("18\n")
    async with running(tmp_path / "postgres") as server:
        assert await value(server, "SELECT 1") == 1
    assert not (tmp_path / "postgres.new").exists()


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    async with running(folder):
        pass
    with (folder / "postgresql.conf").open("a") as settings:
        settings.write("no_such_setting = 1\n")
    server = EmbeddedPostgres(folder)
    with pytest.raises(EmbeddedError, match=r"did not start: .*configuration file"):
        await server.start()
    await server.stop()


async def test_nothing_outside_of_the_folder_is_removed(tmp_path: Path) -> None:
    """An earlier release noted in the folder where its socket was, and a copy of the folder has the note
    too."""
    async with running(tmp_path / "postgres"):
        pass
    theirs = tmp_path / "pillarbox-theirs"
    theirs.mkdir()
    (tmp_path / "postgres.socket").write_text(str(theirs))
    async with running(tmp_path / "postgres"):
        pass
    assert theirs.is_dir()


async def test_a_copied_cluster_starts_beside_the_one_it_was_copied_from(tmp_path: Path) -> None:
    async with running(tmp_path / "postgres") as original:
        shutil.copytree(tmp_path / "postgres", tmp_path / "copy", ignore=shutil.ignore_patterns(SOCKET_NAME))
        if os.geteuid() == 0:
            subprocess.run(
                ["chown", "-R", "--reference", tmp_path / "postgres", tmp_path / "copy"], check=True
            )
        async with running(tmp_path / "copy") as copy:
            assert await value(copy, "SELECT 1") == 1
        assert await value(original, "SELECT 1") == 1
        assert original.pid is not None


def test_missing_programs_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ProgramsError, match="cannot be run from"):
        programs.version_of(tmp_path)


@as_root
async def test_root_gives_its_rights_away(tmp_path: Path) -> None:
    """SEC-09: the database never runs as root, though its folder lies where only root can look."""
    tmp_path.chmod(0o700)
    async with running(tmp_path / "postgres") as server:
        assert server.pid is not None
        assert os.stat(f"/proc/{server.pid}").st_uid != 0


@as_root
async def test_the_socket_lies_where_the_server_can_reach_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder for temporary files that only root may enter is passed over."""
    (tmp_path / "private").mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "private"))
    async with running(tmp_path / "postgres") as server:
        assert await value(server, "SELECT 1") == 1
    assert list((tmp_path / "private").iterdir()) == []


@as_root
def test_programs_that_only_root_reaches_are_copied_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = SystemAccount(65534, 65534)
    monkeypatch.setattr(programs, "COPIES", (tmp_path / "cache",))
    monkeypatch.setattr(programs, "reachable", lambda path, account: False)
    first = programs.installation_for(None, nobody)
    second = programs.installation_for(None, nobody)
    assert first == second
    assert tmp_path / "cache" in first.bin.parents
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert (first.bin / "postgres").stat().st_mode & 0o777 == 0o755


def test_a_private_parent_makes_a_folder_unreachable(tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    stranger = SystemAccount(64321, 64321)
    (tmp_path / "closed").chmod(0o700)
    assert not programs.reachable(inner, stranger)
