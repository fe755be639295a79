"""`pillarbox restore`: everything is there again, in an empty place only, and nothing is sent twice
(OPS-05)."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from cli.conftest import Installation
from kit.backups import PASSPHRASE, backups, passphrase
from kit.clock import ManualClock
from kit.process import environment
from kit.smtp_sink import Sink
from kit.world import world
from kit.zone import Zone
from pillarbox.kernel.postgres.migrations import migrate, migrations_in
from pillarbox.kernel.settings.settings import PASSPHRASE_VARIABLE, create_key_ring_file
from repository.running import Watched, children_of

pytestmark = pytest.mark.sweep

ZONE = """
quay.example     MX 10 mx.quay.example
pier.example     MX 10 mx.quay.example
deaf.example     MX 10 mx.quay.example
mx.quay.example  A  127.0.0.1
"""

OPEN = """
    SELECT email_id, grp, due_at, restored_due_at, owner FROM deliveries ORDER BY email_id, grp
"""


@pytest.fixture(autouse=True)
def phrase() -> Iterator[None]:
    with passphrase():
        yield


@pytest.fixture(scope="module")
def made(made_harbor: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target with one backup of the harbor."""
    target = tmp_path_factory.mktemp("made") / "target"
    with passphrase():
        assert made_harbor.run("backup", str(target)).exit_code == 0
    return target


@pytest.fixture
def blank(databases: Any, tmp_path: Path) -> Iterator[Installation]:
    """An empty database and a data folder that is not there yet."""
    url = databases.fresh(template="template0")
    yield Installation(url, tmp_path / "restored")
    databases.drop(url)


@pytest.fixture(scope="module")
def made_restored(
    made: Path, databases: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    url = databases.fresh(template="template0")
    found = Installation(url, tmp_path_factory.mktemp("restored") / "data")
    with passphrase():
        done = found.run("restore", str(made))
    assert done.exit_code == 0, done.output + done.stderr
    yield found
    databases.drop(url)


@pytest.fixture
def restored(made_restored: Installation, databases: Any, tmp_path: Path) -> Iterator[Installation]:
    """A copy of the restored harbor."""
    url = databases.fresh(template=made_restored.url.removeprefix("postgresql:///").split("?")[0])
    shutil.copytree(made_restored.folder, tmp_path / "data")
    yield Installation(url, tmp_path / "data")
    databases.drop(url)


def test_everything_is_there_again(made_harbor: Installation, restored: Installation) -> None:
    """OPS-05."""
    for table in ("emails", "recipients", "contents", "attachments", "timeline", "dkim_keys", "rollups"):
        rows = f"SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {table} t"
        assert [tuple(r) for r in restored.sql(rows)] == [tuple(r) for r in made_harbor.sql(rows)], table
    assert (restored.folder / "secret.key").read_text() == (made_harbor.folder / "secret.key").read_text()
    (here,), (there,) = restored.blobs(), made_harbor.blobs()
    assert here.read_bytes() == there.read_bytes()
    found = restored.json("verify")
    assert found["gaps"] == []
    assert found["blobs"]["named"] == 1


def test_an_embedded_database_is_restored_into_an_empty_folder(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    alone = EmbeddedInstallation("", folder)
    done = alone.run("restore", str(made))
    assert done.exit_code == 0, done.output + done.stderr
    assert sorted(path.name for path in folder.iterdir()) == [
        "blobs",
        "lock",
        "postgres",
        "run",
        "secret.key",
    ]
    assert alone.json("verify")["ok"] is True
    again = alone.run("restore", str(made))
    assert again.exit_code == 1
    assert "is not empty" in again.stderr


class EmbeddedInstallation(Installation):
    """One that is its data folder alone."""

    def run(self, *arguments: str) -> Any:
        from click.testing import Result
        from typer.testing import CliRunner

        from pillarbox.cli import program

        found: Result = CliRunner().invoke(program(), [*arguments, "--data", str(self.folder)])
        return found


def test_only_an_empty_place_is_filled(
    made: Path, blank: Installation, harbor: Installation, tmp_path: Path
) -> None:
    done = Installation(harbor.url, tmp_path / "empty").run("restore", str(made))
    assert done.exit_code == 1
    assert "The database is not empty" in done.stderr
    blank.folder.mkdir()
    (blank.folder / "note.txt").write_text("mine")
    done = blank.run("restore", str(made))
    assert done.exit_code == 1
    assert "is not empty (it has note.txt)" in done.stderr
    assert blank.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")[0][0] == 0


def test_a_wrong_passphrase_changes_nothing(made: Path, blank: Installation) -> None:
    with passphrase("another one"):
        done = blank.run("restore", str(made))
    assert done.exit_code == 1
    assert "The passphrase is not the one of the backup" in done.stderr
    assert not blank.folder.exists()
    assert blank.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")[0][0] == 0


def test_without_the_key_ring_it_says_what_is_lost(
    made: Path, made_harbor: Installation, blank: Installation
) -> None:
    with passphrase(None):
        refused = blank.run("restore", str(made))
        assert refused.exit_code == 1
        assert "set PILLARBOX_BACKUP_PASSPHRASE" in refused.stderr
        other = blank.run("restore", str(made), "--secret-key", "other:" + "A" * 43 + "=")
        assert other.exit_code == 1
        assert "lacks keys of the backup" in other.stderr
        done = blank.run("restore", str(made), "--without-keys")
    assert done.exit_code == 0, done.stderr
    assert "can NOT be read" in done.output
    assert not (blank.folder / "secret.key").exists()


def test_another_key_by_the_same_name_is_noticed(made: Path, blank: Installation) -> None:
    """The ring of another installation whose operator has named the key alike."""
    (manifest,) = made.glob("backups/*/manifest.json")
    (key_id,) = json.loads(manifest.read_bytes())["key_ring"]["ids"]
    done = blank.run("restore", str(made), "--secret-key", f"{key_id}:" + "A" * 43 + "=")
    assert f"encrypted with key {key_id} can NOT be read" in done.output
    assert "has another one so named" in done.output


def damaged(name: str, change: Callable[[bytes], bytes]) -> Any:
    return pytest.param(name, change, id=name)


@pytest.mark.parametrize(
    ("pattern", "change"),
    [
        damaged("backups/*/database.dump", lambda text: text[: len(text) // 2]),
        damaged("backups/*/blobs.index", lambda text: text[:-10]),
    ],
)
def test_what_is_damaged_is_not_restored(
    made: Path, blank: Installation, tmp_path: Path, pattern: str, change: Callable[[bytes], bytes]
) -> None:
    shutil.copytree(made, tmp_path / "target")
    (file,) = (tmp_path / "target").glob(pattern)
    file.write_bytes(change(file.read_bytes()))
    done = blank.run("restore", str(tmp_path / "target"))
    assert done.exit_code == 1
    assert "damaged: its checksum is another one" in done.stderr
    assert blank.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")[0][0] == 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text[:-1] + b"!", "is damaged: its checksum is another one"),
        (lambda text: text[:10], "is damaged: its checksum is another one"),
        (None, "is missing"),
    ],
)
def test_a_damaged_blob_is_named_and_the_rest_restored(
    made: Path, blank: Installation, tmp_path: Path, change: Callable[[bytes], bytes] | None, reason: str
) -> None:
    shutil.copytree(made, tmp_path / "target")
    (file,) = (tmp_path / "target").glob("blobs/*/*/*")
    if change is None:
        file.unlink()
    else:
        file.write_bytes(change(file.read_bytes()))
    done = blank.run("restore", str(tmp_path / "target"))
    assert done.exit_code == 3, done.output + done.stderr
    assert f"PROBLEM: The blob attachments/{file.name} {reason}; it is not restored." in done.output
    assert blank.sql("SELECT count(*) FROM emails")[0][0] > 0
    assert blank.blobs() == []
    assert not (blank.folder / ".restoring").exists()


def test_a_database_of_which_only_the_dump_was_loaded_is_refused(made: Path, blank: Installation) -> None:
    """What a restore that was killed leaves: without the rows of its migrations no release takes it."""

    async def half() -> None:
        from pillarbox.backup.programs import Programs

        (dump,) = made.glob("backups/*/database.dump")
        scratch = blank.folder.parent
        await Programs(None).restore(dump, blank.url, "schema_migrations", scratch)

    asyncio.run(half())
    blank.folder.mkdir()
    done = blank.run("verify")
    assert done.exit_code == 2
    assert "older schema" in done.stderr


def test_a_backup_of_an_older_schema_is_migrated(databases: Any, tmp_path: Path, blank: Installation) -> None:
    url = databases.fresh(template="template0")

    async def older() -> None:
        conn = await asyncpg.connect(url)
        await migrate(conn, migrations_in()[:16])
        await conn.execute(
            "INSERT INTO teams (id, name, email, created_at) VALUES ($1, 'Old', 'o@old.example', now())",
            "0199a3c2-0000-7000-8000-000000000001",
        )
        await conn.close()

    asyncio.run(older())
    old = Installation(url, tmp_path / "old")
    (tmp_path / "old").mkdir(exist_ok=True)
    ring = create_key_ring_file(tmp_path / "old/secret.key")
    done = old.run("backup", str(tmp_path / "target"), "--without-keys")
    assert done.exit_code == 0, done.stderr
    assert "schema version 16" in done.output
    done = blank.run("restore", str(tmp_path / "target"), "--secret-key", ring)
    assert done.exit_code == 0, done.stderr
    assert blank.sql("SELECT name FROM teams")[0][0] == "Old"
    assert blank.sql("SELECT max(version) FROM schema_migrations")[0][0] == len(migrations_in())
    databases.drop(url)


def test_a_backup_of_a_newer_schema_is_refused(made: Path, blank: Installation, monkeypatch: Any) -> None:
    monkeypatch.setattr("pillarbox.backup.restore.migrations_in", lambda: migrations_in()[:16])
    done = blank.run("restore", str(made))
    assert done.exit_code == 1
    assert "but this release knows only version 16" in done.stderr


# What was open ------------------------------------------------------------------------------------


async def hours_pass(restored: Installation, send: bool = False) -> list[str]:
    """The recipients that got mail while an engine worked on the restored database for a month."""
    async with (
        Sink() as sink,
        world(
            restored.url,
            restored.folder,
            clock=ManualClock(),
            zone=Zone(ZONE),
            started=False,
            route="direct",
            remote_smtp_port=str(sink.port),
            allow_private="127.0.0.0/8",
        ) as pillarbox,
    ):
        if send:
            team = await pillarbox.team("New")
            await team.domain("new.example")
            await team.send(subject="new", from_="n@new.example", to=["new@quay.example"])
        for seconds in (0, 600, 86400, 86400, 86400 * 20):
            pillarbox.clock.advance(seconds)
            while await pillarbox.turn():
                pass
        taken = await sink.messages(0)
        return sorted(recipient for message in taken for recipient in message.recipients)


def test_what_was_open_is_put_aside_and_new_mail_is_sent(restored: Installation) -> None:
    shown = restored.run("restored")
    assert shown.exit_code == 1
    assert "scheduled mail" in shown.output
    assert "mail that was due or being retried" in shown.output
    assert asyncio.run(hours_pass(restored, send=True)) == ["new@quay.example"]
    assert restored.json("verify")["gaps"] == []


def test_what_is_released_goes_out_and_counts_as_uncertain(restored: Installation) -> None:
    before = restored.sql("SELECT count(*) FROM deliveries WHERE restored_due_at IS NOT NULL")[0][0]
    assert before == 5
    done = restored.run("restored", "release")
    assert done.exit_code == 0
    assert "5 items are released." in done.output
    assert restored.run("restored").exit_code == 0
    assert "Nothing is put aside." in restored.run("restored").output
    sent = asyncio.run(hours_pass(restored))
    assert "a@quay.example" in sent
    assert restored.sql("SELECT count(*) FROM timeline WHERE detail::text LIKE '%uncertain%'")[0][0] > 0
    assert len(sent) == len(set(sent))
    assert restored.json("verify")["gaps"] == []


def test_only_what_was_to_be_done_later_is_released(restored: Installation) -> None:
    later = "2100-01-01T00:00:00Z"
    assert "0 items are released." in restored.run("restored", "release", "--due-after", later).output
    due = [row["restored_due_at"] for row in restored.sql(OPEN) if row["restored_due_at"].year < 9000]
    between = sorted(due)[0].isoformat()
    done = restored.run("restored", "release", "--due-after", between)
    assert f"{sum(at > sorted(due)[0] for at in due)} items are released." in done.output.replace(
        "item is", "items are"
    )
    assert "still put aside" in done.output
    assert restored.run("restored", "release", "--due-after", "soon").exit_code == 2


def test_what_is_dropped_ends_failed(restored: Installation) -> None:
    refused = restored.run("restored", "drop")
    assert refused.exit_code == 1
    done = restored.run("restored", "drop", "--yes")
    assert done.exit_code == 0, done.output
    assert "5 items are dropped." in done.output
    assert restored.sql("SELECT count(*) FROM recipients WHERE state = 'failed'")[0][0] > 1
    assert asyncio.run(hours_pass(restored)) == []
    assert restored.json("verify")["gaps"] == []
    assert restored.sql("SELECT count(*) FROM restored")[0][0] == 0


def test_events_for_webhooks_are_put_aside_too(
    harbor: Installation, blank: Installation, tmp_path: Path
) -> None:
    for _ in range(2):
        harbor.sql(
            "INSERT INTO webhook_deliveries (team_id, webhook_id, event_id, kind, at, epoch, due_at)"
            " SELECT team_id, gen_random_uuid(), gen_random_uuid(), 'email.sent', now(), 0, now()"
            "   FROM emails LIMIT 1"
        )
    harbor.run("backup", str(tmp_path / "target"))
    assert blank.run("restore", str(tmp_path / "target")).exit_code == 0
    due = "SELECT count(*) FROM webhook_deliveries WHERE due_at <= now()"
    assert blank.sql(due)[0][0] == 0
    assert "events for webhooks" in blank.run("restored").output
    assert "2 items are released." in blank.run("restored", "release", "--webhooks").output
    assert blank.sql(due)[0][0] == 2
    assert "scheduled mail" in blank.run("restored").output


def test_the_queue_command_shows_and_retries_it(restored: Installation) -> None:
    shown = restored.run("queue")
    assert "put aside" in shown.output
    assert "may have been sent since" in shown.output
    assert restored.run("queue", "retry").exit_code == 0
    released = restored.sql(
        "SELECT uncertain FROM deliveries WHERE restored_due_at IS NULL AND owner IS NULL"
    )
    assert released, "something was due"
    assert all(row[0] > 0 for row in released), "it may have been sent since the backup"
    left = restored.run("restored")
    assert "mail that was due or being retried" not in left.output
    assert "scheduled mail" in left.output


def test_the_target_may_hold_several_backups(made: Path, blank: Installation) -> None:
    done = blank.run("restore", str(made), "--backup", "20200101T000000Z-0000")
    assert done.exit_code == 1
    assert f"the newest is {backups(made)[0]}" in done.stderr
    done = blank.run("restore", str(made.parent / "nothing"))
    assert done.exit_code == 1
    assert "There is no whole backup" in done.stderr


def test_a_killed_restore_is_served_by_nobody(made: Path, tmp_path: Path) -> None:
    """kill -9 as soon as the database is being made; the folder is refused until it is removed."""
    folder = tmp_path / "data"
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "restore", str(made), "--data", str(folder)],
        env=environment() | {PASSPHRASE_VARIABLE: PASSPHRASE},
        stdout=subprocess.DEVNULL,
    )
    family = None
    try:
        while not list(folder.glob(".restoring-postgres*")):
            assert process.poll() is None
            time.sleep(0.02)
        family = Watched(children_of(process.pid))
    finally:
        process.kill()
        process.wait()
    family.all_ended()
    assert not (folder / "postgres").exists()
    serve = subprocess.run(
        [sys.executable, "-m", "pillarbox", "serve", "--data", str(folder), "--http", "127.0.0.1:0"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert serve.returncode == 1
    assert "was not finished; remove the folder and restore again" in serve.stderr
    again = EmbeddedInstallation("", folder).run("restore", str(made))
    assert again.exit_code == 1
    assert "is not empty" in again.stderr
