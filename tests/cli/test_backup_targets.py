"""Targets that are not as they should be: the installation's own folders, another installation's backups,
damaged backups, wrong passphrases, no room for temporary files (OPS-05)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from cli.conftest import Installation
from kit.backups import backups, passphrase
from kit.disk import small_disk
from pillarbox.kernel.postgres.migrations import migrations_in

pytestmark = pytest.mark.sweep


@pytest.fixture(autouse=True)
def phrase() -> Iterator[None]:
    with passphrase():
        yield


def test_a_backup_does_not_go_into_the_data_folder(harbor: Installation) -> None:
    """With `--keep` it would remove blobs of the installation as those of older backups."""
    before = sorted(harbor.folder.rglob("*"))
    for place in (harbor.folder, harbor.folder / "blobs", harbor.folder / "backup"):
        refused = harbor.run("backup", str(place), "--keep", "1")
        assert refused.exit_code == 1
        assert "data folder" in refused.stderr
    assert sorted(harbor.folder.rglob("*")) == before


def test_backups_of_another_installation_are_left_alone(harbor: Installation, tmp_path: Path) -> None:
    target = tmp_path / "target"
    harbor.sql("INSERT INTO blob_store (store_id) VALUES ($1)", uuid4())
    assert harbor.run("backup", str(target)).exit_code == 0
    harbor.sql("UPDATE blob_store SET store_id = $1", uuid4())
    before = backups(target)
    refused = harbor.run("backup", str(target), "--keep", "1")
    assert refused.exit_code == 1
    assert "has backups of another installation" in refused.stderr
    assert backups(target) == before
    assert harbor.run("backup", str(target), "--check").exit_code == 0


@pytest.mark.parametrize("name", ["manifest.json", "blobs.index"])
def test_a_damaged_backup_does_not_stop_the_next_one(harbor: Installation, tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    harbor.run("backup", str(target))
    (file,) = target.glob(f"backups/*/{name}")
    file.write_bytes(b"x" + file.read_bytes()[1:])
    done = harbor.run("backup", str(target))
    assert done.exit_code == 3
    assert "damaged" in done.output
    assert "1 blob (1 copied now)" in done.output
    assert len(backups(target)) == 2
    assert harbor.run("backup", str(target), "--check").exit_code == 0


def test_other_folders_of_a_target_are_no_backups(harbor: Installation, tmp_path: Path) -> None:
    """A backup that somebody renamed to keep it, and a folder of theirs."""
    target = tmp_path / "target"
    harbor.run("backup", str(target))
    (name,) = backups(target)
    kept = [target / "backups" / other for other in ("before-the-move", ".unfinished-business")]
    for place in kept:
        shutil.copytree(target / "backups" / name, place)
    done = harbor.run("backup", str(target), "--keep", "1")
    assert done.exit_code == 0, done.output
    assert "1 older backup is removed." in done.output
    assert all(place.is_dir() for place in kept)


def test_the_newest_backup_stays_though_the_clock_went_back(harbor: Installation, tmp_path: Path) -> None:
    target = tmp_path / "target"
    harbor.run("backup", str(target))
    (name,) = backups(target)
    future = target / "backups" / ("2099" + name[4:])
    (target / "backups" / name).rename(future)
    done = harbor.run("backup", str(target), "--keep", "1")
    (newest,) = backups(target)
    assert newest > future.name
    assert done.exit_code == 3, "the renamed one is damaged: its manifest has another name"


def test_a_wrong_passphrase_is_no_damage(harbor: Installation, tmp_path: Path) -> None:
    target = tmp_path / "target"
    harbor.run("backup", str(target))
    with passphrase("another"):
        for words in (("backup", str(target), "--check"), ("backup", "drill", str(target))):
            refused = harbor.run(*words)
            assert refused.exit_code == 1
            assert refused.stdout == ""
            assert refused.stderr.startswith("pillarbox: The passphrase is not the one of the backup ")
    (file,) = target.glob("backups/*/keys.json")
    file.write_bytes(file.read_bytes()[:-9] + b"AAAAAA==\n")
    with passphrase("another"):
        refused = harbor.run("backup", str(target), "--check")
    assert "PROBLEM: The file keys.json" in refused.output
    assert "NOT whole" in refused.output


def test_a_drill_refuses_what_a_restore_would_refuse(harbor: Installation, tmp_path: Path) -> None:
    newest = len(migrations_in())
    harbor.sql("INSERT INTO schema_migrations VALUES ($1, 'later', 'x', now(), $2)", newest + 1, newest)
    assert harbor.run("backup", str(tmp_path / "target")).exit_code == 0
    drilled = harbor.run("backup", "drill", str(tmp_path / "target"))
    assert drilled.exit_code == 1
    assert f"this release knows only version {newest}" in drilled.stderr


def test_a_passphrase_that_is_no_text_is_one_sentence(harbor: Installation, tmp_path: Path) -> None:
    with passphrase("\udcff"):
        refused = harbor.run("backup", str(tmp_path / "target"))
    assert refused.exit_code == 1
    assert refused.stderr == "pillarbox: The passphrase is not UTF-8 text.\n"


def test_without_room_for_temporary_files_the_target_is_not_blamed(
    harbor: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    harbor.run("backup", str(target))
    with small_disk(tmp_path / "disk", 1) as disk:
        disk.fill(leaving=4096)
        monkeypatch.setattr("tempfile.tempdir", str(disk.folder))
        for words in (("backup", str(target), "--check"), ("backup", "drill", str(target))):
            refused = harbor.run(*words)
            assert refused.exit_code == 1
            assert f"The folder {disk.folder}" in refused.output + refused.stderr
            assert "The target" not in refused.output + refused.stderr
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
        refused = harbor.run("backup", str(target))
        assert refused.stderr == (
            "pillarbox: The folder for temporary files cannot be used: No such file or directory.\n"
        )


def test_a_restore_onto_a_full_disk_is_one_sentence(
    harbor: Installation, blank: Installation, tmp_path: Path
) -> None:
    harbor.run("backup", str(tmp_path / "target"))
    with small_disk(tmp_path / "disk", 1) as disk:
        disk.fill(leaving=32 * 1024)
        store = ("--blob-url", f"file:{disk.folder}/blobs")
        refused = blank.run("restore", str(tmp_path / "target"), *store)
    assert refused.exit_code == 1
    assert refused.stderr == (
        "pillarbox: The blob store or the target cannot be used: No space left on device.\n"
    )


def test_a_folder_where_a_start_was_refused_is_empty(harbor: Installation, blank: Installation) -> None:
    target = blank.folder.parent / "target"
    harbor.run("backup", str(target))
    (blank.folder / "run").mkdir(parents=True)
    (blank.folder / "lock").touch()
    done = blank.run("restore", str(target))
    assert done.exit_code == 0, done.output + done.stderr


@pytest.fixture
def blank(databases: object, tmp_path: Path) -> Iterator[Installation]:
    """An empty database and a data folder that is not there yet."""
    url = databases.fresh(template="template0")  # type: ignore[attr-defined]
    yield Installation(url, tmp_path / "restored")
    databases.drop(url)  # type: ignore[attr-defined]


def test_the_data_folder_of_whichever_installation_is_no_target(harbor: Installation, tmp_path: Path) -> None:
    """Of one that the command was not told of, because its database was named."""
    other = tmp_path / "other"
    (other / "postgres").mkdir(parents=True)
    (other / "postgres" / "PG_VERSION").write_text("18")
    for target in (other, other / "backups", tmp_path / "other" / ".." / "other"):
        refused = harbor.run("backup", str(target), "--without-keys")
        assert refused.exit_code == 1
        assert "is a data folder" in refused.stderr
        assert [path.name for path in other.iterdir()] == ["postgres"]
