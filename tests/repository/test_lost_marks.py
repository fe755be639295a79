"""What a database knows of its key ring and its blob store is lost or damaged: a start does not go on as if
the installation were a new one, and a start that is refused changes nothing."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from kit.commands import command, refused
from kit.process import PATIENCE, served
from pillarbox.kernel.settings.settings import create_key_ring_file

pytestmark = pytest.mark.sweep

NEW_DOMAIN = ("domains", "trust", "harbor.example", "--create")
KEYS = "SELECT id FROM key_ring_keys"
ID_FILE = "blobs/50/store-id"


def answered(database_url: str, statement: str) -> list[Any]:
    """The first column of the rows."""

    async def ask() -> list[Any]:
        conn = await asyncpg.connect(database_url, timeout=PATIENCE)
        try:
            return [row[0] for row in await conn.fetch(statement)]
        finally:
            await conn.close()

    return asyncio.run(ask())


def key_in(folder: Path) -> str:
    return (folder / "secret.key").read_text().partition(":")[0]


def test_a_database_that_lost_the_list_of_its_keys_still_refuses_another_ring(
    tmp_path: Path, database_url: str
) -> None:
    """A restore without the table, or an operator who emptied it: the values say which keys they need."""
    one, two = tmp_path / "one", tmp_path / "two"
    with served(one, database_url=database_url, processes="1"):
        assert command(*NEW_DOMAIN, "--data", str(one)).returncode == 0
    answered(database_url, "TRUNCATE key_ring_keys")
    assert f"need a key ring with the key {key_in(one)}" in refused(two, database_url=database_url)
    assert not (two / "secret.key").exists()
    assert answered(database_url, KEYS) == [key_in(one)]
    with served(one, database_url=database_url, processes="1"):
        assert command("keyring", "show", "--data", str(one)).returncode == 0


@pytest.mark.slow
def test_a_key_that_the_list_lacks_is_named_and_listed_again(tmp_path: Path, database_url: str) -> None:
    """Somebody removed a row: no start asks for the key, so it must be seen before the key is taken away."""
    folder = tmp_path / "one"
    place = ("--data", str(folder))
    with served(folder, database_url=database_url, processes="1"):
        assert command(*NEW_DOMAIN, *place).returncode == 0
    old = key_in(folder)
    ring = folder / "secret.key"
    ring.write_text(f"new:{b64encode(bytes(32)).decode()},{ring.read_text().strip()}")
    with served(folder, database_url=database_url, processes="1"):
        answered(database_url, f"DELETE FROM key_ring_keys WHERE id = '{old}'")
        shown = command("keyring", "show", *place)
        assert shown.returncode == 1
        assert "`pillarbox keyring reseal` lists them again" in shown.stdout
        verified = command("verify", *place)
        assert f"GAP key_not_listed: The list of keys lacks {old}" in verified.stdout
        assert command("keyring", "reseal", *place).returncode == 0
        assert command("keyring", "show", *place).returncode == 0
        assert "No gaps" in command("verify", *place).stdout
        ring.write_text(f"newer:{b64encode(bytes([1]) * 32).decode()},{ring.read_text().strip()}")
        assert "begins with the key newer, which the server" in command("keyring", "reseal", *place).stdout


@pytest.mark.slow
def test_a_start_that_the_blob_store_refuses_lets_no_key_be_known(tmp_path: Path, database_url: str) -> None:
    """Servers that lack a known key answer 503."""
    one, two = tmp_path / "one", tmp_path / "two"
    with served(one, database_url=database_url, processes="1"):
        pass
    two.mkdir()
    create_key_ring_file(two / "secret.key")
    ring = f"{(two / 'secret.key').read_text().strip()},{(one / 'secret.key').read_text().strip()}"
    (two / "secret.key").write_text(ring)
    assert "The blob store in" in refused(two, database_url=database_url)
    assert answered(database_url, KEYS) == [key_in(one)]


def test_another_key_by_the_same_name_is_called_so(tmp_path: Path, database_url: str) -> None:
    with served(tmp_path, database_url=database_url, processes="1"):
        pass
    answered(database_url, "UPDATE key_ring_keys SET probe = probe || '\\x00'")
    sentence = refused(tmp_path, database_url=database_url)
    key = key_in(tmp_path)
    assert f"it has another key {key}, and the secrets in the database need the key {key};" in sentence


@pytest.mark.parametrize("damage", ["", "garbage\n"])
@pytest.mark.slow
def test_a_damaged_id_of_the_blob_store_can_be_written_anew(
    tmp_path: Path, database_url: str, damage: str
) -> None:
    flags = ("--data", str(tmp_path), "--database-url", database_url)
    with served(tmp_path, database_url=database_url, processes="1"):
        pass
    good = (tmp_path / ID_FILE).read_text()
    (tmp_path / ID_FILE).write_text(damage)
    found = command("verify", *flags)
    assert found.returncode == 2
    assert "`pillarbox verify --adopt-blob-store` writes it anew" in found.stderr
    assert command("verify", "--adopt-blob-store", *flags).returncode == 0
    assert (tmp_path / ID_FILE).read_text() == good


def test_a_database_that_cannot_be_written_is_one_sentence(tmp_path: Path, database_url: str) -> None:
    """The address of a standby, or a role without rights."""
    name = answered(database_url, "SELECT current_database()")[0]
    answered(database_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    sentence = refused(tmp_path / "one", database_url=database_url)
    assert "It is a standby, or read-only: --database-url must lead to the primary." in sentence
    with_writes = f"{database_url}&options=-c%20default_transaction_read_only%3Doff"
    answered(with_writes, f"ALTER DATABASE {name} RESET default_transaction_read_only")
    answered(database_url, "CREATE ROLE poor LOGIN")
    sentence = refused(tmp_path / "two", database_url=database_url.replace("user=pillarbox", "user=poor"))
    assert "permission denied" in sentence
    assert "must own the database" in sentence


def test_a_new_database_that_cannot_hold_every_text_is_refused(tmp_path: Path, database_url: str) -> None:
    answered(
        database_url,
        "CREATE DATABASE narrow ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' LOCALE_PROVIDER libc "
        "TEMPLATE template0",
    )
    name = answered(database_url, "SELECT current_database()")[0]
    sentence = refused(tmp_path, database_url=database_url.replace(f"/{name}?", "/narrow?"))
    answered(database_url, "DROP DATABASE narrow")
    assert "has the encoding LATIN1, which cannot hold every text" in sentence
