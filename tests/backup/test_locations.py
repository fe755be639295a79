"""What the argument TARGET names, and which targets lie in the installation itself (OPS-05)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pillarbox.backup.blob_index import together
from pillarbox.backup.failure import BackupError
from pillarbox.backup.location import location_of, refuse_shared_place
from pillarbox.backup.make import name_of


@pytest.mark.parametrize(
    ("argument", "folder"),
    [
        ("/backup", "/backup"),
        ("/a b/ü/50%41#x?y", "/a b/ü/50%41#x?y"),
        ("//[backup", "//[backup"),
        ("c:backup", "c:backup"),
        ("file:///backup/a%20b", "/backup/a b"),
        ("file:/backup", "/backup"),
        ("file://localhost/backup", "/backup"),
    ],
)
def test_a_folder_is_any_text_that_is_no_url(argument: str, folder: str) -> None:
    assert location_of(argument).folder == Path(folder).absolute()


def test_a_bucket_is_a_url() -> None:
    assert location_of("s3://bucket/mail/").url == "s3://bucket/mail"


@pytest.mark.parametrize(
    ("argument", "part"),
    [
        ("", "has no name"),
        ("  ", "has no name"),
        ("a\0b", "has no name"),
        ("http://host/x", "cannot be at http://"),
        ("ftp://x", "cannot be at ftp://"),
        ("s3:/bucket", "names no bucket"),
        ("s3://", "names no bucket"),
        ("s3://[x", "names no bucket"),
        ("file://host/x", "folder of this machine"),
        ("file:x", "folder of this machine"),
        ("s3://user:secret@bucket/x", "Credentials"),
    ],
)
def test_what_names_no_place_is_one_sentence(argument: str, part: str) -> None:
    with pytest.raises(BackupError, match=part) as refused:
        location_of(argument)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("target", "data", "blobs"),
    [
        ("d", "d", "file:{here}/d/blobs"),
        ("d/backup", "d", "file:{here}/d/blobs"),
        ("link", "d", "file:{here}/d/blobs"),
        ("d/../d/x", "d", "file:{here}/d/blobs"),
        (".", "blobs", "file:{here}/blobs/blobs"),
        (".", "backups", "s3://bucket"),
        (".", "d", "file:{here}/blobs"),
        (".", "d", "file:{here}/blobs/deeper"),
        ("store/deeper", "d", "file:{here}/store"),
        ("a b", "d", "file:{here}/a%20b/blobs"),
        ("s3://bucket/b", "d", "s3://bucket/b"),
        ("s3://bucket/b", "d", "s3a://bucket/b/"),
        ("s3://bucket/b", "d", "s3://bucket/b/blobs"),
        ("s3://bucket", "d", "s3://bucket/backups/x"),
    ],
)
def test_a_target_and_the_installation_do_not_lie_in_each_other(
    target: str, data: str, blobs: str, tmp_path: Path
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("d")
    place = location_of(target if "://" in target else str(tmp_path / target))
    with pytest.raises(BackupError, match=r"lie in each other|lies in the target"):
        refuse_shared_place(place, tmp_path / data, blobs.format(here=tmp_path))


@pytest.mark.parametrize(
    ("target", "blobs"),
    [
        ("backup", "file:{here}/d/blobs"),
        (".", "file:{here}/d/blobs"),
        ("dd", "file:{here}/d/blobs"),
        ("s3://bucket/backup", "s3://bucket/blobs"),
        ("s3://bucket/backup", "s3://bucket"),
        ("s3://bucket/backup", "file:{here}/d/blobs"),
        ("backup", "s3://bucket/blobs"),
    ],
)
def test_a_target_beside_the_installation_is_accepted(target: str, blobs: str, tmp_path: Path) -> None:
    place = location_of(target if "://" in target else str(tmp_path / target))
    refuse_shared_place(place, tmp_path / "d", blobs.format(here=tmp_path))


async def test_where_one_blob_fails_nobody_works_on_after_the_failure() -> None:
    ended = []

    async def other() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(1)

    async def failing() -> None:
        await asyncio.sleep(0)
        raise BackupError("full")

    with pytest.raises(BackupError, match="full"):
        await together([other(), failing(), other()])
    assert ended == [1, 1]


NOW = datetime(2026, 11, 22, 15, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("newest", "name"),
    [
        (None, "20261122T151000.000000Z-ab12"),
        ("20261122T150959.999999Z-ffff", "20261122T151000.000000Z-ab12"),
        ("20261122T151000.000000Z-0000", "20261122T151000.000001Z-ab12"),
        ("20991231T235959.999999Z-0000", "21000101T000000.000000Z-ab12"),
    ],
)
def test_a_new_backup_is_the_newest_though_the_clock_went_back(newest: str | None, name: str) -> None:
    assert name_of(NOW, newest, "ab12") == name
    assert newest is None or name > newest
