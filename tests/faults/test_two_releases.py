"""The nodes of an installation are upgraded one by one: two releases work on one database (OPS-04)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from kit.commands import command
from kit.ledger import Journal, acknowledged, arrivals, compare, open_work, states
from kit.load import LoadClient, to_each
from kit.process import KEY, connected, reconciled, served, settled
from kit.remote_servers import remote_servers
from pillarbox.kernel.postgres.migrations import migrations_in
from pillarbox.kernel.security.secrets import KeyRing

pytestmark = pytest.mark.sweep

ROOT = Path(__file__).parents[2]
PREVIOUS = "88b0df1"
"""The commit before migrations had to go with the release that runs: schema version 16."""

RATE = 40
MAILS = 160
DESTINATIONS = [f"quay{number}.example" for number in range(5)]


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the previous release."""
    packed = subprocess.run(["git", "archive", PREVIOUS, "src"], cwd=ROOT, capture_output=True)
    if packed.returncode != 0:
        pytest.skip(f"the previous release ({PREVIOUS}) is not in this checkout's history")
    folder = tmp_path_factory.mktemp("previous")
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        # Releases of Python before 3.11.4 know no filters, and what is extracted is our own.
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder / "src"


@pytest.fixture
def blank_url(databases: Any) -> Iterator[str]:
    url = databases.fresh(template="template0")
    yield url
    databases.drop(url)


async def version(url: str) -> int:
    async with connected(url) as conn:
        return int(await conn.fetchval("SELECT max(version) FROM schema_migrations"))


async def test_two_releases_under_load_lose_and_double_nothing(
    previous: Path, blank_url: str, tmp_path: Path
) -> None:
    """The new node migrates under load; both accept and deliver; then the old one is stopped."""
    ring = KeyRing.generate_text()
    with remote_servers(tmp_path / "far", {"127.0.0.1": {}}) as far:
        shared = {
            "database_url": blank_url,
            "secret_key": ring,
            "blob_url": f"file:{tmp_path / 'blobs'}",
            "route": f"relay:smtp://127.0.0.1:{far.port}",
            "processes": "1",
        }
        journals = [Journal(tmp_path / "old-ledger"), Journal(tmp_path / "new-ledger")]
        with served(tmp_path / "old", sources=previous, **shared) as old:
            assert await version(blank_url) == 16
            async with LoadClient(old.ready(), KEY, journals[0]) as first:
                load = asyncio.create_task(first.post_many(MAILS, RATE, to_each(DESTINATIONS)))
                new = await asyncio.to_thread(lambda: served(tmp_path / "new", **shared))
                with new as running:
                    assert await version(blank_url) == len(migrations_in())
                    async with LoadClient(running.ready(), KEY, journals[1]) as second:
                        await second.post_many(MAILS, RATE, to_each(DESTINATIONS))
                        await load
                        # The old release goes on with the new schema.
                        await first.post_many(MAILS // 2, RATE, to_each(DESTINATIONS))
                        assert await asyncio.to_thread(old.stop) == 0
                        await second.post_many(MAILS // 4, RATE, to_each(DESTINATIONS))
                        await settled(blank_url, 60)
                    assert running.process.poll() is None
    accepted = [mail for journal in journals for mail in acknowledged(journal.path)]
    async with connected(blank_url) as conn:
        found = compare(accepted, arrivals(far.journal), await states(conn))
        assert await open_work(conn) == 0
    found.assert_sound(doubled=0)
    assert found.accepted == 2 * MAILS + MAILS // 2 + MAILS // 4
    await reconciled(blank_url)
    assert not [line for line in (*old.log.all, *running.log.all) if '"level": "error"' in line]


def test_upgrade_check_reads_the_release_that_runs(previous: Path, tmp_path: Path) -> None:
    """Its note has another form: the secrets stood in it."""
    with served(tmp_path / "old", sources=previous, processes="1") as old:
        old.ready()
        done = command("upgrade", "--check", "--json", "--data", str(tmp_path / "old"))
    found = json.loads(done.stdout)
    assert found["schema_version"] == 16
    assert found["known_version"] == len(migrations_in())
    assert found["free_octets"] > 0
    assert done.returncode == (0 if found["ready"] else 1)
