"""Room on the disk (DUR-10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.clock import ManualClock
from pillarbox.kernel.storage.disk_space import MIB, DiskFull, DiskSpace, Space, disks_of, needed, space_of

GIB = 1024 * MIB


@pytest.mark.parametrize(
    ("total", "kept"),
    [
        (16 * MIB, 4 * MIB),
        (200 * MIB, 50 * MIB),
        (256 * MIB, 64 * MIB),
        (640 * MIB, 64 * MIB),
        (2 * GIB, 2 * GIB // 10),
        (10 * GIB, GIB),
        (4096 * GIB, GIB),
        (0, 0),
    ],
)
def test_how_much_stays_free(total: int, kept: int) -> None:
    assert needed(total) == kept


def test_mail_is_refused_while_any_of_the_disks_has_little_space() -> None:
    clock, spaces = ManualClock(), {Path("/a"): Space(20 * GIB, 2 * GIB), Path("/b"): Space(GIB, GIB)}
    room = DiskSpace(clock, list(spaces), spaces.get)
    room.check()
    spaces[Path("/b")] = Space(GIB, 60 * MIB)
    clock.advance(1)
    with pytest.raises(DiskFull) as refusal:
        room.check()
    assert refusal.value.status == 503
    assert refusal.value.headers == {"retry-after": "10"}
    spaces[Path("/b")] = Space(GIB, 110 * MIB)
    clock.advance(1)
    room.check()


def test_it_looks_once_a_second() -> None:
    clock, looks = ManualClock(), []
    room = DiskSpace(clock, [Path("/a")], lambda folder: looks.append(folder))
    for _ in range(10):
        assert not room.is_short
        clock.advance(0.25)
    assert len(looks) == 3


def test_a_folder_that_is_not_there_yet_has_the_space_of_the_one_above(tmp_path: Path) -> None:
    found, here = space_of(tmp_path / "not" / "yet"), space_of(tmp_path)
    assert found is not None
    assert here is not None
    assert found.total == here.total > 0


def test_where_nobody_can_tell_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert space_of(tmp_path / "file" / "below") is None
    DiskSpace(ManualClock(), [tmp_path / "file" / "below"]).check()
    DiskSpace(ManualClock(), []).check()


def test_the_disks_are_those_of_the_embedded_database_and_of_blobs_in_files(tmp_path: Path) -> None:
    assert disks_of(tmp_path, "s3://bucket") == []
    assert disks_of(tmp_path, f"file:{tmp_path}/some%20blobs") == [tmp_path / "some blobs"]
    (tmp_path / "postgres").mkdir()
    assert disks_of(tmp_path, "s3://bucket") == [tmp_path / "postgres"]
