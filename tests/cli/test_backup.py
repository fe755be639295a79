"""`pillarbox backup`: what is made is whole, what is not whole is no backup (OPS-05)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Installation
from kit.backups import PASSPHRASE, backups, passphrase, programs, unfinished
from kit.disk import MIB, small_disk
from kit.process import environment
from pillarbox.backup.drill import remove_left
from pillarbox.kernel.settings.settings import PASSPHRASE_VARIABLE


@pytest.fixture(autouse=True)
def phrase() -> Iterator[None]:
    with passphrase():
        yield


@pytest.fixture(scope="module")
def made(made_harbor: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target with one backup."""
    target = tmp_path_factory.mktemp("made") / "target"
    with passphrase():
        assert made_harbor.run("backup", str(target)).exit_code == 0
    return target


@pytest.fixture
def target(made: Path, tmp_path: Path) -> Path:
    """A copy of it that this test may damage."""
    shutil.copytree(made, tmp_path / "target")
    return tmp_path / "target"


def test_a_backup_is_made_and_whole(harbor: Installation, tmp_path: Path) -> None:
    """OPS-05."""
    target = tmp_path / "target"
    done = harbor.run("backup", str(target))
    assert done.exit_code == 0, done.output
    assert "17 emails" in done.output
    assert "1 blob (1 copied now)" in done.output
    assert "encrypted with the passphrase" in done.output
    checked = harbor.run("backup", str(target), "--check")
    assert checked.exit_code == 0, checked.output
    assert "The backup is whole." in checked.output
    assert unfinished(target) == []


def test_the_manifest_says_what_is_in_it(made_harbor: Installation, made: Path) -> None:
    (name,) = backups(made)
    folder = made / "backups" / name
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["name"] == name
    assert manifest["tables"]["emails"] == 17
    assert manifest["tables"]["recipients"] == 25
    assert manifest["schema_version"] == manifest["migrations"][-1]["version"]
    assert manifest["key_ring"]["included"] is True
    assert manifest["files"].keys() == {"database.dump", "blobs.index", "keys.json"}
    ring = (made_harbor.folder / "secret.key").read_text().strip()
    assert manifest["key_ring"]["ids"] == [ring.split(":")[0]]
    everything = b"".join(path.read_bytes() for path in folder.iterdir())
    assert ring.split(":")[1].encode() not in everything
    assert {oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == {"0o600"}
    (noted,) = made_harbor.sql("SELECT name, target FROM backups")
    assert tuple(noted) == (name, str(made))


def test_a_blob_is_copied_once(harbor: Installation, target: Path) -> None:
    (copy,) = [path for path in (target / "blobs").rglob("*") if path.is_file()]
    before = copy.stat().st_ino
    again = harbor.run("backup", str(target), "--without-keys")
    assert "1 blob (0 copied now)" in again.output
    assert copy.stat().st_ino == before
    assert "1 blob (0 copied now)" in harbor.run("backup", str(target), "--reread", "--without-keys").output
    copy.write_bytes(b"x" * copy.stat().st_size)
    assert "PROBLEM: The blob attachments/" in harbor.run("backup", str(target), "--check").output
    assert "1 blob (1 copied now)" in harbor.run("backup", str(target), "--reread", "--without-keys").output
    assert harbor.run("backup", str(target), "--check").exit_code == 0


def test_older_backups_go_and_the_blobs_of_the_others_stay(harbor: Installation, tmp_path: Path) -> None:
    target = tmp_path / "target"
    for _ in range(2):
        assert harbor.run("backup", str(target), "--keep", "2", "--without-keys").exit_code == 0
    harbor.sql("DELETE FROM attachments WHERE blob IS NOT NULL")
    assert (
        "1 older backup is removed"
        in harbor.run("backup", str(target), "--keep", "2", "--without-keys").output
    )
    newest, older = backups(target)
    assert [path for path in (target / "blobs").rglob("*") if path.is_file()]
    for name in (newest, older):
        assert harbor.run("backup", str(target), "--check", "--backup", name).exit_code == 0
    harbor.run("backup", str(target), "--keep", "1", "--without-keys")
    assert len(backups(target)) == 1
    assert [path for path in (target / "blobs").rglob("*") if path.is_file()] == []
    assert harbor.run("backup", str(target), "--check").exit_code == 0


def test_the_key_ring_is_left_out_only_when_that_is_said(harbor: Installation, tmp_path: Path) -> None:
    target = tmp_path / "target"
    with passphrase(None):
        refused = harbor.run("backup", str(target))
        assert refused.exit_code == 1
        assert "--without-keys" in refused.stderr
        assert backups(target) == []
        done = harbor.run("backup", str(target), "--without-keys")
    assert done.exit_code == 0
    assert "The key ring is NOT in it." in done.output
    assert not list(target.glob("backups/*/keys.json"))


def test_a_blob_that_is_missing_is_said_and_stops_nothing(harbor: Installation, tmp_path: Path) -> None:
    (blob,) = harbor.blobs()
    blob.unlink()
    done = harbor.run("backup", str(tmp_path / "target"))
    assert done.exit_code == 3
    assert "1 blob that a row names was not there" in done.output
    assert harbor.run("backup", str(tmp_path / "target"), "--check").exit_code == 0


@pytest.mark.parametrize("name", ["database.dump", "blobs.index", "keys.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["truncated", "changed", "gone"])
def test_a_damaged_file_is_found(made_harbor: Installation, target: Path, name: str, damage: str) -> None:
    (file,) = target.glob(f"backups/*/{name}")
    content = bytearray(file.read_bytes())
    if damage == "gone":
        file.unlink()
    else:
        content[len(content) // 2] ^= 1
        file.write_bytes(content[: len(content) // 2] if damage == "truncated" else content)
    with passphrase(None):
        checked = made_harbor.run("backup", str(target), "--check")
    assert checked.exit_code == 1, checked.output
    assert "NOT whole" in checked.output or checked.stderr.startswith("pillarbox: ")
    assert isinstance(checked.exception, SystemExit)


@pytest.mark.parametrize("damage", ["truncated", "gone"])
def test_a_damaged_blob_is_found(harbor: Installation, target: Path, damage: str) -> None:
    (copy,) = [path for path in (target / "blobs").rglob("*") if path.is_file()]
    if damage == "gone":
        copy.unlink()
    else:
        os.truncate(copy, 5)
    checked = harbor.run("backup", str(target), "--check")
    assert checked.exit_code == 1
    assert "The blob attachments/" in checked.output
    assert "1 copied now" in harbor.run("backup", str(target), "--without-keys").output
    assert harbor.run("backup", str(target), "--check").exit_code == 0


def test_a_full_disk_makes_no_backup(harbor: Installation, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 8) as disk:
        target = disk.folder / "target"
        assert harbor.run("backup", str(target)).exit_code == 0
        (before,) = backups(target)
        disk.fill(leaving=64 * 1024)
        done = harbor.run("backup", str(target), "--reread", "--without-keys")
        assert done.exit_code == 1
        assert "cannot be used: No space left on device." in done.stderr
        assert backups(target) == [before]
        assert unfinished(target) == []
        disk.relieve()
        assert disk.free > MIB
        assert harbor.run("backup", str(target), "--check").exit_code == 0


def test_a_target_that_cannot_be_written_is_one_sentence(harbor: Installation, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 8) as disk:
        disk.set_read_only(True)
        done = harbor.run("backup", str(disk.folder / "target"))
    assert done.exit_code == 1
    assert "Read-only file system" in done.stderr
    (tmp_path / "file").write_text("x")
    done = harbor.run("backup", str(tmp_path / "file" / "target"))
    assert done.exit_code == 1
    assert "Not a directory" in done.stderr


def test_a_file_that_grows_too_large_makes_no_backup(harbor: Installation, tmp_path: Path) -> None:
    """A limit of the account (RLIMIT_FSIZE): the write fails in the middle of the dump."""
    flags = ["--data", str(harbor.folder), "--database-url", harbor.url]
    words = ["-m", "pillarbox", "backup", str(tmp_path / "target"), "--without-keys"]
    # Nothing else may be written while the limit holds, such as compiled modules.
    command = [sys.executable, "-B", *words, *flags]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 40; exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "File too large" in done.stderr
    assert backups(tmp_path / "target") == []


def test_a_newer_server_needs_newer_programs(harbor: Installation, tmp_path: Path) -> None:
    old = programs(tmp_path / "bin", major=13)
    done = harbor.run("backup", str(tmp_path / "target"), "--pg-bin", str(old))
    assert done.exit_code == 1
    assert "pg_dump here is of version 13, which cannot dump it" in done.stderr
    assert "--pg-bin" in done.stderr


def test_a_dump_that_fails_makes_no_backup(harbor: Installation, tmp_path: Path) -> None:
    failing = programs(tmp_path / "bin", dump="echo some; echo 'pg_dump: error: no more' >&2; exit 1")
    done = harbor.run("backup", str(tmp_path / "target"), "--pg-bin", str(failing))
    assert done.exit_code == 1
    assert done.stderr.strip() == "pillarbox: pg_dump failed: no more"
    assert backups(tmp_path / "target") == []


def test_a_killed_backup_leaves_none_and_stops_nobody(harbor: Installation, tmp_path: Path) -> None:
    """kill -9 in the middle of the dump; the next backup tidies up."""
    target, begun = tmp_path / "target", tmp_path / "begun"
    endless = programs(tmp_path / "bin", dump=f"touch {begun}; while echo half; do sleep 0.05; done")
    flags = ["--data", str(harbor.folder), "--database-url", harbor.url, "--pg-bin", str(endless)]
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "backup", str(target), "--without-keys", *flags],
        env=environment(),
        stdout=subprocess.DEVNULL,
    )
    try:
        while not begun.exists():
            assert process.poll() is None
            time.sleep(0.02)
        second = harbor.run("backup", str(tmp_path / "other"), "--without-keys")
        assert second.exit_code == 1
        assert "Another" in second.stderr
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert backups(target) == []
    assert harbor.run("backup", str(target), "--check").stderr.startswith(
        "pillarbox: There is no whole backup"
    )
    done = harbor.run("backup", str(target))
    assert done.exit_code == 0, done.stderr
    assert unfinished(target) == []
    assert harbor.run("backup", str(target), "--check").exit_code == 0


def test_a_drill_restores_verifies_and_leaves_nothing(
    harbor: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    harbor.run("backup", str(tmp_path / "target"))
    before = harbor.sql("SELECT * FROM deliveries ORDER BY team_id, email_id, grp")
    done = harbor.run("backup", "drill")
    assert done.exit_code == 0, done.output + done.stderr
    assert "verified without a gap" in done.output
    assert list((tmp_path / "scratch").iterdir()) == []
    assert harbor.sql("SELECT * FROM deliveries ORDER BY team_id, email_id, grp") == before


@pytest.mark.slow
def test_what_a_killed_drill_has_left_is_removed_by_the_next_one(
    harbor: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 while the backup is restored: everybody's mail lies among the temporary files."""
    scratch, target = tmp_path / "scratch", tmp_path / "target"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    assert harbor.run("backup", str(target)).exit_code == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "backup", "drill", str(target), "--data", str(harbor.folder)],
        env=environment() | {"TMPDIR": str(scratch), PASSPHRASE_VARIABLE: PASSPHRASE},
        stdout=subprocess.DEVNULL,
    )
    try:
        while not list(scratch.glob("pillarbox-drill-*/postgres")):
            assert process.poll() is None
            time.sleep(0.02)
        (beside,) = scratch.glob("pillarbox-drill-*")
        remove_left(scratch)
        assert beside.exists()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert beside.exists()
    assert harbor.run("backup", "drill", str(target)).exit_code == 0
    assert list(scratch.glob("pillarbox-drill-*")) == []


def test_a_drill_finds_what_verify_would_find(harbor: Installation, tmp_path: Path) -> None:
    harbor.sql("DELETE FROM contents WHERE id = $1", harbor.email("plain"))
    harbor.run("backup", str(tmp_path / "target"))
    done = harbor.run("backup", "drill", str(tmp_path / "target"))
    assert done.exit_code == 1
    assert "PROBLEM:" in done.output
    assert "The drill FAILED" in done.output


def test_wrong_words_are_an_error_of_usage(empty: Installation) -> None:
    assert empty.run("backup", "one", "two").exit_code == 2
    refused = empty.run("backup", "drill")
    assert refused.exit_code == 1
    assert "the database knows of no backup" in refused.stderr
    assert empty.run("backup", "s3://user:secret@bucket/x", "--without-keys").exit_code == 1
